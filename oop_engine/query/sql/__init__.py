"""SQL over streams: a text becomes the query that one would write by hand.

reading       tokens and statements; mistakes with line, column and a caret
scalar        scalar expressions become those of Arrow
relation      names that a query may use, and the columns they are
tables        streams, declared tables, views, files
windows       TUMBLE, HOP, CUMULATE, SESSION, time_bucket; those of the thesis; OVER; ISTREAM, DSTREAM, RSTREAM
joins         keys, bands of time, other conditions
nested        subqueries: IN, EXISTS, one value
aggregates    aggregate functions, by their names
aliases       names of the SELECT list in other parts
listing       the items of the SELECT list
stage         a SELECT while it is read
grouping      GROUP BY
ranks         ROW_NUMBER, RANK, DENSE_RANK
plans         operators behind a stream
select        one SELECT
unions        the queries of UNION
planner       statements, one after the other
entry         ``sql``
"""
