"""Nexmark's queries in SQL; q6 is of the cheapest bid, and q101 to q106 are those of RisingWave's suite.

Where the text leaves a tie open, the time or the number of the auction decides.
"""

from __future__ import annotations

__all__ = ["MORE", "QUERIES"]

QUERIES = {
    "q0": """
        SELECT auction, bidder, price, date_time FROM bid
    """,
    "q1": """
        SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid
    """,
    "q2": """
        SELECT auction, price FROM bid WHERE auction IN (1007, 1020, 2001, 2019, 2087)
    """,
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id WHERE
        a.category = 10 AND p.state IN ('or','id','ca')
    """,
    "q4": """
        SELECT category, avg(final) FROM (SELECT max(b.price) AS final, a.category FROM auction a, bid b
        WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category)
        q GROUP BY category
    """,
    "q5": """
        WITH n AS (SELECT auction, count(*) AS num, window_start, window_end FROM HOP(bid, date_time,
        INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY auction, window_start, window_end), m AS (SELECT
        max(num) AS maxn, window_end FROM n GROUP BY window_end) SELECT n.auction, n.num FROM n JOIN m ON
        n.window_end = m.window_end AND n.num >= m.maxn
    """,
    "q6": """
        SELECT seller, avg(final) OVER (PARTITION BY seller ORDER BY date_time ROWS BETWEEN 10 PRECEDING AND
        CURRENT ROW) FROM (SELECT seller, price AS final, date_time FROM (SELECT a.id, a.seller, b.price,
        b.date_time, row_number() OVER (PARTITION BY a.id ORDER BY b.price, b.date_time) AS r FROM bid b
        JOIN auction a ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) WHERE r <= 1)
    """,
    "q16": """
        SELECT channel, strftime(date_time, '%Y-%m-%d') AS day, max(strftime(date_time, '%I:%m')) AS minute,
        count(*) AS total, count(*) FILTER (WHERE price < 10000) AS r1, count(*) FILTER (WHERE price >=
        10000 AND price < 1000000) AS r2, count(*) FILTER (WHERE price >= 1000000) AS r3, count(DISTINCT
        bidder) AS b, count(DISTINCT bidder) FILTER (WHERE price < 10000) b1, count(DISTINCT bidder) FILTER
        (WHERE price >= 10000 AND price < 1000000) b2, count(DISTINCT bidder) FILTER (WHERE price >=
        1000000) b3, count(DISTINCT auction) a, count(DISTINCT auction) FILTER (WHERE price < 10000) a1,
        count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) a2, count(DISTINCT
        auction) FILTER (WHERE price >= 1000000) a3 FROM bid GROUP BY channel, day
    """,
    "q7": """
        SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b JOIN (SELECT max(price) AS maxprice,
        window_end FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) m ON b.price =
        m.maxprice WHERE b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end
    """,
    "q8": """
        SELECT p.id, p.name, p.window_start FROM (SELECT id, name, window_start, window_end FROM
        TUMBLE(person, date_time, INTERVAL '10' SECOND) GROUP BY id, name, window_start, window_end) p JOIN
        (SELECT seller, window_start, window_end FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND) GROUP
        BY seller, window_start, window_end) a ON p.id = a.seller AND p.window_start = a.window_start AND
        p.window_end = a.window_end
    """,
    "q9": """
        SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category,
        auction, bidder, price, bid_time FROM (SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS
        bid_time, row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS r FROM auction
        a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) WHERE r <= 1
    """,
    "q10": """
        SELECT auction, bidder, price, date_time, strftime(date_time, '%Y-%m-%d') AS day,
        strftime(date_time, '%I:%M') AS minute FROM bid
    """,
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price, CASE WHEN hour(date_time) >= 8 AND hour(date_time)
        <= 18 THEN 'dayTime' WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE
        'otherTime' END AS kind, date_time, length(regexp_replace(extra, '[^c]', '', 'g')) AS c_counts FROM
        bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": """
        SELECT strftime(date_time, '%Y-%m-%d') AS day, count(*) AS total, count(*) FILTER (WHERE price <
        10000) AS r1, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS r2, count(*) FILTER
        (WHERE price >= 1000000) AS r3, count(DISTINCT bidder) AS b, count(DISTINCT bidder) FILTER (WHERE
        price < 10000) b1, count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) b2,
        count(DISTINCT bidder) FILTER (WHERE price >= 1000000) b3, count(DISTINCT auction) a, count(DISTINCT
        auction) FILTER (WHERE price < 10000) a1, count(DISTINCT auction) FILTER (WHERE price >= 10000 AND
        price < 1000000) a2, count(DISTINCT auction) FILTER (WHERE price >= 1000000) a3 FROM bid GROUP BY 1
    """,
    "q17": """
        SELECT auction, strftime(date_time, '%Y-%m-%d') AS day, count(*) AS total, count(*) FILTER (WHERE
        price < 10000) AS r1, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS r2, count(*)
        FILTER (WHERE price >= 1000000) AS r3, min(price), max(price), avg(price), sum(price) FROM bid GROUP
        BY auction, day
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, date_time, extra FROM (SELECT *, row_number() OVER
        (PARTITION BY bidder, auction ORDER BY date_time DESC, extra) AS r FROM bid) WHERE r <= 1
    """,
    "q19": """
        SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS r
        FROM bid) WHERE r <= 10
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name,
        a.description, a.initial_bid, a.reserve, a.date_time, a.expires, a.seller, a.category, a.extra FROM
        bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
    """,
    "q21": """
        SELECT auction, bidder, price, channel, CASE WHEN lower(channel) = 'apple' THEN '0' WHEN
        lower(channel) = 'google' THEN '1' WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) =
        'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id FROM bid
        WHERE regexp_matches(url, '(&|^)channel_id=') OR lower(channel) IN
        ('apple','google','facebook','baidu')
    """,
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS
        dir2, split_part(url, '/', 6) AS dir3 FROM bid
    """,
    "q101": """
        SELECT a.id, a.item_name, b.max_price FROM auction a LEFT JOIN (SELECT max(price) AS max_price,
        auction FROM bid GROUP BY auction) b ON a.id = b.auction
    """,
    "q102": """
        SELECT a.id, a.item_name, count(b.auction) AS n FROM auction a JOIN bid b ON a.id = b.auction GROUP
        BY a.id, a.item_name HAVING count(b.auction) >= (SELECT count(*) // count(DISTINCT auction) FROM
        bid)
    """,
    "q103": """
        SELECT id, item_name FROM auction WHERE id IN (SELECT auction FROM bid GROUP BY auction HAVING
        count(*) >= 20)
    """,
    "q104": """
        SELECT id, item_name FROM auction WHERE id NOT IN (SELECT auction FROM bid GROUP BY auction HAVING
        count(*) < 20)
    """,
    "q105": """
        SELECT a.id, a.item_name, count(b.auction) AS n FROM auction a JOIN bid b ON a.id = b.auction GROUP
        BY a.id, a.item_name ORDER BY n DESC, a.id LIMIT 1000
    """,
    "q106": """
        SELECT min(final) FROM (SELECT a.id, max(b.price) AS final FROM auction a JOIN bid b ON a.id =
        b.auction AND b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id)
    """,
}

MORE = {
    "q11": (
        """
        SELECT bidder, window_start, window_end, count(*) AS n FROM SESSION(bid PARTITION BY bidder, date_time, INTERVAL
        '10' SECOND) GROUP BY bidder, window_start, window_end
        """,
        """
        SELECT bidder, min(date_time), max(date_time) + INTERVAL '10' SECOND, count(*) FROM (SELECT *, sum(fresh) OVER
        (PARTITION BY bidder ORDER BY date_time ROWS UNBOUNDED PRECEDING) AS run FROM (SELECT *, CASE WHEN date_time -
        lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) <= INTERVAL '10' SECOND THEN 0 ELSE 1 END AS fresh
        FROM bid)) GROUP BY bidder, run
        """,
    ),
    "q12": (
        """
        SELECT bidder, window_start, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY bidder,
        window_start, window_end
        """,
        """
        SELECT bidder, time_bucket(INTERVAL '10' SECOND, date_time) AS s, count(*) FROM bid GROUP BY bidder, s
        """,
    ),
    "q13": (
        """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM bid b JOIN side s ON b.auction % 100 = s.key
        """,
        """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM bid b JOIN side s ON b.auction % 100 = s.key
        """,
    ),
}
"""Queries that RisingWave's suite lacks, for us and for DuckDB; q12 goes by event time, q13 reads a table beside it."""
