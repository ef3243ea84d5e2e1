"""Ordering: tuples put in the order of the progressing attribute, a page or many at a time."""
