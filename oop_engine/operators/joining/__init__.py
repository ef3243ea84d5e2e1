"""Parts that the three window joins share: their terms, the tuples each side keeps, their bounds."""
