"""Experiments of Madsen, Zhou, Su, Enorm: Efficient Window-Based Computation, DEBS 2016."""

SOURCE = "Enorm: Madsen et al., DEBS 2016"
