"""Experiments of Theodorakis et al., Hammer Slide: Work- and CPU-efficient Streaming Window Aggregation, ADMS 2018."""

SOURCE = "Hammer Slide: Theodorakis et al., ADMS 2018"
