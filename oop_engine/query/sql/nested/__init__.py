"""Queries inside queries: IN and EXISTS become joins, subqueries of one value a column.

inner       the FROM and WHERE of a subquery, its own conditions apart from those with the query around it
subqueries  IN and EXISTS among the conditions of WHERE
scalars     (SELECT max(x) ...), and EXISTS as a value
"""
