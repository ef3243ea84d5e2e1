"""SQL over streams: a text becomes the query that one would write by hand.

reading       tokens and statements; mistakes with line, column and a caret
scalar        scalar expressions become those of Arrow
relation      names that a query may use, and the columns they are
tables        streams, declared tables, views, files
windows       TUMBLE, HOP, CUMULATE, SESSION, time_bucket; those of the thesis; OVER; ISTREAM, DSTREAM, RSTREAM
joins         keys, bands of time, other conditions
subqueries    IN and EXISTS
scalars       subqueries of one value
aggregates    aggregate functions, by their names
stage         a SELECT while it is read
grouping      GROUP BY
ranks         ROW_NUMBER, RANK, DENSE_RANK
plans         operators behind a stream
select        one SELECT
planner       statements, one after the other
entry         ``sql``
"""
