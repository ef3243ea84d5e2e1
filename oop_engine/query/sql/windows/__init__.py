"""Windows of SQL: how they are written, and the rows and streams that they make.

calls       TUMBLE, HOP, CUMULATE, SESSION, time_bucket
brackets    windows as the thesis and CQL write them
bounds      the bounds of windows as columns of rows
frames      OVER (... PRECEDING AND CURRENT ROW)
streams_of  ISTREAM, DSTREAM, RSTREAM
"""
