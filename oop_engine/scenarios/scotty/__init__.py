"""Experiments of Traub et al., Scotty: General and Efficient Open-Source Window Aggregation, TODS 2021."""

SOURCE = "Scotty: Traub et al., TODS 2021"
