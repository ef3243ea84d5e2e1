SELECT a.id, b.id AS i FROM log a FULL OUTER JOIN other b ON a.id = b.id
SELECT id, a.bytes, b.bytes AS c FROM log a JOIN other b USING (id)
SELECT id FROM log a FULL JOIN other b USING (id)
SELECT id FROM log a LEFT JOIN other b USING (id)
SELECT id FROM log a RIGHT JOIN other b USING (id)
SELECT * FROM log a JOIN other b USING (id)
SELECT id FROM log ORDER BY id LIMIT 3 OFFSET 2
SELECT id FROM log ORDER BY id FETCH FIRST 3 ROWS ONLY
SELECT id FROM log ORDER BY id OFFSET 50
SELECT id FROM log ORDER BY bytes DESC NULLS FIRST, id LIMIT 7
SELECT id FROM log ORDER BY host NULLS LAST, id DESC LIMIT 7
SELECT id FROM log ORDER BY host, id LIMIT 20
SELECT id FROM log ORDER BY host DESC, id LIMIT 20
SELECT id, ts + INTERVAL '90' SECOND AS t FROM log
SELECT id, ts - TIMESTAMP '2026-01-01' AS d FROM log
SELECT id, INTERVAL '1 day' * 2 AS d FROM log
SELECT id, CAST(x AS INTEGER) AS d, CAST(x AS DECIMAL(10, 1)) AS e FROM log
SELECT id, bytes / 2 AS a, bytes // 2 AS b, bytes % 2 AS c, -bytes // 3 AS d FROM log
SELECT host FROM log UNION ALL SELECT upper(host) FROM other
SELECT bytes FROM log UNION ALL SELECT x FROM other
SELECT kind FROM log UNION ALL SELECT bytes FROM other
SELECT host, mode(kind) AS s FROM log GROUP BY host
SELECT host, percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes) AS s FROM log GROUP BY host
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes) FROM log
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes) FILTER (WHERE ok) AS s FROM log
SELECT host, approx_count_distinct(kind) AS s FROM log GROUP BY host
SELECT * EXCLUDE (x) FROM log
SELECT * REPLACE (bytes + 1 AS bytes) FROM log
SELECT * RENAME (bytes AS b) FROM log
SELECT log.* FROM log
SELECT a.*, b.id AS i FROM log a JOIN other b ON a.id = b.id
SELECT bytes AS b, b + 1 AS c FROM log
SELECT host AS h, count(*) AS n FROM log GROUP BY h HAVING n > 3
SELECT bytes + 1 AS b FROM log WHERE b > 3
SELECT id FROM log WHERE (host, kind) IN (SELECT host, kind FROM other)
SELECT id FROM log a WHERE EXISTS (SELECT 1 FROM other b WHERE b.host = a.host AND b.bytes > a.bytes)
SELECT id FROM log a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE b.host = a.host AND b.bytes > a.bytes)
SELECT id FROM log a WHERE a.kind IN (SELECT b.kind FROM other b WHERE b.host = a.host)
SELECT id FROM log a WHERE a.kind NOT IN (SELECT b.kind FROM other b WHERE b.host = a.host)
SELECT id FROM log a WHERE a.bytes > (SELECT avg(b.bytes) FROM other b WHERE b.host = a.host)
SELECT id, (SELECT count(*) FROM other b WHERE b.host = a.host) AS n FROM log a
SELECT id, (SELECT max(b.bytes) FROM other b WHERE b.host = a.host AND b.kind = 1) AS n FROM log a
SELECT id, EXISTS (SELECT 1 FROM other b WHERE b.host = a.host) AS e FROM log a
SELECT id FROM log a WHERE EXISTS (SELECT 1 FROM other b WHERE b.host = a.host) OR a.bytes > 10
SELECT id FROM log a WHERE (SELECT count(*) FROM other b WHERE b.id = a.id) = 1
SELECT id FROM log WHERE bytes IN (SELECT max(bytes) FROM other)
SELECT id FROM log WHERE bytes + 1 IN (SELECT bytes FROM other)
SELECT id FROM log WHERE NOT bytes IN (1, 2)
SELECT id FROM log WHERE regexp_matches(host, '[ab]')
SELECT id FROM log WHERE host ~ '[ab]'
SELECT id FROM log WHERE host IS NOT DISTINCT FROM NULL
SELECT id FROM log WHERE ok IS TRUE
SELECT id FROM log WHERE ok IS NOT TRUE
SELECT id FROM log WHERE ok = false
SELECT id FROM log WHERE NOT ok
SELECT id, CASE host WHEN 'a' THEN 1 WHEN 'b' THEN 2 END AS c FROM log
SELECT id, greatest(bytes, kind) AS g, least(bytes, kind, 3) AS l FROM log
SELECT id, concat(host, '-', kind) AS c, concat_ws('-', host, 'x') AS d FROM log
SELECT id, ascii(host) AS a, ascii('') AS b, ascii('ä' || host) AS c FROM log
SELECT id, concat_ws('/', host, kind) AS c, concat_ws('', host, NULL, x > 1) AS d, concat_ws('/', upper(host)) AS e, concat_ws(host, kind, kind) AS f FROM log
SELECT id, host || kind AS c FROM log
SELECT id, round(x, 1) AS a, floor(x) AS b, ceil(x) AS c, trunc(x) AS d, sign(x) AS e FROM log
SELECT id, round(bytes / 3, 2) AS a, sqrt(abs(x)) AS b, ln(abs(x) + 1) AS c, mod(bytes, 3) AS d FROM log
WITH c AS (SELECT host, sum(bytes) AS s FROM log GROUP BY host), d AS (SELECT max(s) AS m FROM c) SELECT c.host FROM c JOIN d ON c.s = d.m
WITH c(h, n) AS (SELECT host, count(*) FROM log GROUP BY host) SELECT h, n FROM c
SELECT h, n FROM (SELECT host, count(*) FROM log GROUP BY host) AS q(h, n)
SELECT q.h FROM (SELECT host AS h FROM log) AS q WHERE q.h IS NOT NULL
SELECT count(*) AS n, min(ts) AS a, max(ts) AS b FROM log
SELECT count(*) AS n FROM log WHERE false
SELECT sum(bytes) AS n, count(bytes) AS m FROM log WHERE bytes > 1000
SELECT host, sum(bytes) AS n FROM log WHERE bytes > 1000 GROUP BY host
SELECT host FROM log GROUP BY host HAVING sum(bytes) > 10 AND count(*) > 2
SELECT 1 AS one FROM log HAVING count(*) > 2
SELECT sum(bytes) * 2 + count(*) AS n FROM log
SELECT host, max(bytes) - min(bytes) AS n FROM log GROUP BY host
SELECT upper(host) AS h, count(*) AS n FROM log GROUP BY upper(host)
SELECT bytes % 2 = 0 AS e, count(*) AS n FROM log GROUP BY 1
SELECT host, count(*) FILTER (WHERE ok) AS n, sum(bytes) FILTER (bytes > 3) AS m FROM log GROUP BY host
SELECT date_trunc('month', ts) AS m, count(*) AS n FROM log GROUP BY m
SELECT year(ts) AS y, count(*) AS n FROM log GROUP BY y
SELECT time_bucket(INTERVAL '1 minute', ts, INTERVAL '10 seconds') AS m, count(*) AS n FROM log GROUP BY m
SELECT time_bucket(INTERVAL '1 minute', ts, TIMESTAMP '2026-01-01 00:00:07') AS m, count(*) AS n FROM log GROUP BY m
SELECT id, time_bucket(INTERVAL '1 minute', ts, TIMESTAMP '2026-01-01 00:00:07') AS m FROM log
SELECT dayname(ts) AS d, count(*) AS n FROM log GROUP BY ALL
SELECT id FROM log WHERE ts > '2026-01-01 00:02:00'
SELECT id FROM log WHERE ts BETWEEN '2026-01-01 00:01:00' AND '2026-01-01 00:02:00'
SELECT id FROM log WHERE ts::DATE = DATE '2026-01-01'
SELECT id FROM log WHERE extract(epoch FROM ts) > 1767225720
SELECT strftime(ts, '%H:%M') AS m, count(*) AS n FROM log GROUP BY m
SELECT a.id, b.id AS j FROM log a JOIN other b ON a.host = b.host AND a.ts = b.ts
SELECT a.id, b.id AS j FROM log a JOIN other b ON a.host = b.host AND date_trunc('minute', a.ts) = date_trunc('minute', b.ts)
SELECT a.id, b.id AS j FROM log a JOIN other b ON time_bucket(INTERVAL '10 s', a.ts) = time_bucket(INTERVAL '10 s', b.ts)
SELECT a.id, b.id AS j FROM log a JOIN other b ON a.bytes + 1 = b.bytes
SELECT a.id, b.id AS j FROM log a JOIN other b ON upper(a.host) = upper(b.host) AND a.ts = b.ts
SELECT a.id, b.id AS j FROM log a, other b WHERE a.host = b.host AND a.kind = 1 AND b.kind = 2
SELECT a.id, b.id AS j, c.id AS k FROM log a JOIN other b ON a.host = b.host AND a.ts = b.ts JOIN log c ON c.id = b.id
SELECT a.id FROM log a JOIN log b ON a.id = b.id AND b.bytes > 3
SELECT a.id FROM log a SEMI JOIN other b ON a.host = b.host AND a.ts = b.ts
SELECT a.id FROM log a ANTI JOIN other b ON a.host = b.host
SELECT a.id FROM log a ASOF LEFT JOIN other b ON a.id = b.id AND a.ts >= b.ts
SELECT a.id FROM log AS a, log AS b WHERE a.id = b.id
SELECT ID, HOST FROM LOG
SELECT id /* c */ FROM log;
FROM log SELECT id
SELECT id FROM log WHERE host = 'O''Brien'
SELECT id FROM log WHERE host IN (NULL)
SELECT id FROM log WHERE host NOT IN ('a', NULL)
SELECT id FROM log WHERE NULL
SELECT id, NULL AS n, NULL + 1 AS m FROM log
SELECT host, count(*) AS n FROM log GROUP BY host QUALIFY row_number() OVER (ORDER BY n DESC, host) <= 2
SELECT id, rank() OVER (ORDER BY bytes DESC NULLS LAST) AS r FROM log
SELECT id, row_number() OVER (ORDER BY bytes) AS r FROM log WHERE bytes IS NULL
SELECT id, row_number() OVER (PARTITION BY host ORDER BY bytes NULLS FIRST, id) AS r FROM log
SELECT id, row_number() OVER (PARTITION BY host ORDER BY bytes DESC, id) AS r FROM log
SELECT id, rank() OVER (PARTITION BY host ORDER BY bytes) AS r FROM log
SELECT id, bytes::HUGEINT AS h FROM log
SELECT id, bytes IS NULL AS c, bytes ISNULL AS d, bytes NOTNULL AS e FROM log
SELECT (SELECT max(id) FROM log) AS m FROM other
SELECT id FROM log WHERE bytes = (SELECT max(bytes) FROM log)
SELECT any_value(host) IS NULL AS c FROM log WHERE host IS NULL
SELECT bool_and(ok) AS a, bool_or(ok) AS b, product(kind) AS c FROM log
SELECT arg_max(id, bytes) IS NOT NULL AS a FROM log
SELECT host, avg(bytes) AS a FROM log GROUP BY host ORDER BY count(*) DESC, host LIMIT 2
SELECT coalesce(sum(bytes), 0) AS s FROM log WHERE false
SELECT id FROM log WHERE host NOT LIKE 'a%'
SELECT id FROM log WHERE NOT host NOT LIKE 'a%' OR host !~~ '%b'
SELECT id, host NOT ILIKE 'A' AS a, upper(host) || '%' LIKE 'A#%' ESCAPE '#' AS b, host || '_' NOT LIKE '_#_' ESCAPE '#' AS c FROM log
SELECT id, host || '\%' LIKE 'a\%' AS a, host || '%' LIKE 'a\%' AS b FROM log
SELECT id FROM log QUALIFY row_number() OVER (PARTITION BY host ORDER BY bytes, id) = 1 ORDER BY id DESC
SELECT id, rank() OVER (PARTITION BY host ORDER BY bytes) AS r FROM log ORDER BY r DESC, id LIMIT 5
SELECT id, rank() OVER (ORDER BY bytes) AS r FROM log ORDER BY rank() OVER (ORDER BY bytes), bytes + id LIMIT 5
SELECT DISTINCT host FROM log QUALIFY rank() OVER (PARTITION BY host ORDER BY bytes) = 1
SELECT DISTINCT host, dense_rank() OVER (PARTITION BY host ORDER BY kind) AS r FROM log
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY host ORDER BY id) AS r FROM log) WHERE r < 1
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY host ORDER BY id) AS r FROM log) WHERE r <= 0
SELECT abs(bytes) AS bytes, count(*) AS n FROM log GROUP BY bytes
SELECT host, max(bytes) AS bytes FROM log GROUP BY host HAVING bytes > 15
SELECT host, max(bytes) AS bytes FROM log GROUP BY ALL HAVING bytes > 15 AND min(bytes) < 0
SELECT strftime(ts, '%H:%M:%S') AS a, strftime('%x %X %f|%g', ts) AS b, strftime(day, '%c') AS c FROM log
SELECT ts::VARCHAR AS a, x::VARCHAR AS b, x || '' AS c, (x * 1e10)::VARCHAR AS d, (x / 1e7) || '' AS e, day || '' AS f FROM log
SELECT concat(ts, '|', x, '|', price) AS a FROM log
SELECT id, day - DATE '2026-01-01' AS a, day + 1 AS b, day - 1 AS c, 7 + day AS d FROM log
SELECT host, sum(price) * 2 AS a, sum(price) + 1 AS b, sum(price) - min(price) AS c, -sum(price) AS d, sum(price) * max(price) AS e FROM log GROUP BY host
SELECT host, stddev(price) AS b, var_pop(price) AS c FROM log GROUP BY host
SELECT id, x::FLOAT = 1.25 AS a, (x::FLOAT / 10)::FLOAT IN (0.05, 0.7) AS b FROM log
SELECT a.id, b.id AS i, c.id AS j FROM log a FULL JOIN other b ON a.id = b.id FULL JOIN log c ON a.bytes = c.id
SELECT a.time, b.time AS u FROM (SELECT ts, id AS time FROM log) a FULL JOIN (SELECT ts, bytes AS time FROM other) b ON a.time = b.time
SELECT id FROM log WHERE NOT (kind IN (SELECT kind FROM other WHERE bytes > 10))
SELECT id, kind IN (SELECT kind FROM other WHERE host = 'a') AS a, bytes NOT IN (SELECT bytes FROM other WHERE bytes > 3) AS b FROM log
SELECT id FROM log WHERE bytes IN (SELECT bytes FROM other UNION ALL SELECT 3 FROM log) OR host = 'a'
SELECT host, host IN (SELECT host FROM other WHERE bytes > 15) AS a, count(*) AS n FROM log GROUP BY host
SELECT host, (SELECT max(b.id) FROM other b WHERE b.host = log.host) AS m FROM log GROUP BY host
SELECT id, substring('abcd', -2) AS a, substring('abcd', 0) AS b, right('abcd', 3) AS c, left('abcd', -1) AS d, right('abcd', -1) AS e FROM log
SELECT id, regexp_full_match(host, 'a|b.') AS a, extract(milliseconds FROM ts) AS b, date_trunc('minutes', ts) AS c FROM log
SELECT time_bucket('1 minute', ts) AS m, count(*) AS n FROM log GROUP BY m
SELECT DISTINCT n FROM (SELECT count(*) AS n FROM log WHERE id < 0)
SELECT a.id, b.id AS j, c.id AS k FROM log a RIGHT JOIN other b ON a.id = b.id + 20 RIGHT JOIN txt c ON c.id = b.id
SELECT a.n, b.m FROM (SELECT count(*) AS n FROM log WHERE id < 0) a JOIN (SELECT count(*) AS m FROM other WHERE id < 0) b ON a.n = b.m
SELECT coalesce(s, 7) AS s FROM (SELECT sum(bytes) AS s FROM log WHERE id < 0) q
SELECT count(*) AS a FROM log WHERE id < 0 UNION ALL SELECT count(*) FROM other
SELECT count(*) AS k FROM (SELECT max(id) AS n FROM log WHERE id < 0)
SELECT host AS h, count(*) AS n FROM log GROUP BY 1 HAVING h = 'a' OR h IS NULL
SELECT host AS h, count(*) AS n FROM log GROUP BY ALL HAVING h IN (SELECT host FROM other WHERE kind = 1)
SELECT host AS h, count(*) AS n FROM log GROUP BY h HAVING h NOT IN ('a')
SELECT host AS h, count(*) AS n FROM log GROUP BY host HAVING h IN (SELECT host FROM other WHERE bytes > 18)
SELECT id FROM log WHERE EXISTS (SELECT count(*) FROM other WHERE id < 0)
SELECT id FROM log WHERE EXISTS (SELECT host FROM other GROUP BY host HAVING count(*) > 1000)
SELECT id FROM log WHERE EXISTS (SELECT max(id) FROM other WHERE id < 0)
SELECT id FROM log WHERE NOT EXISTS (SELECT count(*) FROM other WHERE id < 0)
SELECT id FROM log WHERE NOT EXISTS (SELECT host FROM other GROUP BY host HAVING count(*) > 1000) AND id < 5
SELECT id FROM log WHERE id IN (SELECT count(*) FROM other WHERE id < 0)
SELECT id, (SELECT count(*) FROM other WHERE id < 0) AS n FROM log
SELECT id, EXISTS (SELECT kind FROM other GROUP BY kind) AS e FROM log
SELECT id, a + 0.5 AS x, a * x2 AS y FROM (SELECT id, a, 0.25 AS x2 FROM dec)
SELECT id, a = 2.5 AS x, CASE WHEN id > 3 THEN a ELSE 0.5 END AS y FROM dec
SELECT id, a::DOUBLE / 3 AS p, round(a::DOUBLE, 2) AS q, a::FLOAT AS r FROM dec
SELECT id, a::DOUBLE AS p, b::DOUBLE AS q, c::DOUBLE AS r FROM dec
SELECT id, price = 1.45 AS a, price * 1.0 AS b, price > 0.37 AS c FROM log
SELECT kind + 1 AS k, count(*) AS n FROM log GROUP BY kind + 1 HAVING k IN (2)
SELECT kind AS k, count(*) AS n FROM log GROUP BY k HAVING k IN (SELECT kind FROM other) OR n > 14
SELECT max(n) + 1 AS s FROM (SELECT count(*) AS n FROM log WHERE id < 0)
SELECT n * 2 AS m FROM (SELECT count(*) AS n FROM log WHERE id < 0) WHERE n = 0
SELECT n FROM (SELECT count(*) AS n FROM log WHERE id < 0)
SELECT sum(n) AS s FROM (SELECT count(*) AS n FROM log WHERE id < 0 UNION ALL SELECT count(*) AS n FROM other)
SELECT upper(host) AS h, count(*) AS n FROM log GROUP BY h HAVING h IN (SELECT upper(host) FROM other WHERE bytes > 18)
WITH c AS (SELECT count(*) AS n FROM log WHERE id < 0) SELECT l.id, c.n FROM log l JOIN c ON l.id = c.n
WITH c AS (SELECT count(*) AS n, sum(bytes) AS s FROM log WHERE false) SELECT n, s FROM c
SELECT upper(host) AS h, count(*) AS n FROM log GROUP BY upper(host) HAVING upper(host) IN (SELECT upper(host) FROM other WHERE bytes > 18)
SELECT bytes % 3 AS h, count(*) AS n FROM log GROUP BY h HAVING h NOT IN (SELECT kind FROM other WHERE kind IS NOT NULL)
SELECT id, lag(bytes) OVER (PARTITION BY host ORDER BY ts, id) AS s FROM log
SELECT id, lag(bytes, 2) OVER (ORDER BY ts, id) AS s, lead(host) OVER (ORDER BY ts, id) AS l FROM log
SELECT id, lag(bytes, 2, -7) OVER (PARTITION BY kind ORDER BY ts, id) AS s FROM log
SELECT id, bytes - lag(bytes) OVER (PARTITION BY host ORDER BY ts, id) AS d FROM log WHERE bytes IS NOT NULL
SELECT id, lead(price, 1, price) OVER (PARTITION BY kind, ok ORDER BY ts, id) AS s, lag(day) OVER (PARTITION BY kind ORDER BY ts, id) AS d FROM log
SELECT id, ts - lag(ts) OVER (PARTITION BY host ORDER BY ts, id) AS gap FROM log
SELECT id, date_diff('second', lag(ts) OVER (PARTITION BY host ORDER BY ts, id), ts) AS gap FROM log
SELECT id, sum(bytes) OVER (ORDER BY ts, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM log
SELECT id, avg(x) OVER (PARTITION BY host ORDER BY ts, id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS s FROM log
SELECT id, max(host) OVER (ORDER BY ts, id ROWS BETWEEN 3 FOLLOWING AND 5 FOLLOWING) AS s, count(*) OVER (ORDER BY ts, id ROWS BETWEEN 3 FOLLOWING AND 5 FOLLOWING) AS n FROM log
SELECT id, count(bytes) OVER (ORDER BY ts, id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS s FROM log
SELECT id, sum(bytes) OVER (PARTITION BY host ORDER BY ts) AS s FROM log
SELECT id, sum(bytes) OVER (PARTITION BY host ORDER BY ts, id ROWS UNBOUNDED PRECEDING) AS s FROM log
SELECT id, sum(bytes) OVER (PARTITION BY host ORDER BY ts, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM log
SELECT id, sum(bytes) OVER (PARTITION BY host) AS s, bytes * 100.0 / sum(bytes) OVER () AS p FROM log
SELECT id, sum(bytes) OVER w AS s, avg(x) OVER w AS a FROM log WINDOW w AS (PARTITION BY host ORDER BY ts RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND CURRENT ROW)
SELECT id, lag(id) OVER (ORDER BY ts DESC) AS s FROM (SELECT max(id) AS id, ts FROM log GROUP BY ts)
SELECT *, lag(bytes) OVER (PARTITION BY host ORDER BY ts, id) AS before FROM log
SELECT * FROM (SELECT id, bytes, lag(bytes) OVER (PARTITION BY host ORDER BY ts, id) AS before FROM log) WHERE bytes > before
SELECT id FROM log QUALIFY lag(bytes) OVER (PARTITION BY host ORDER BY ts, id) < bytes
SELECT host, count(*) AS n FROM (SELECT host, ts, ts - lag(ts) OVER (PARTITION BY host ORDER BY ts, id) > INTERVAL '10' SECOND AS new FROM log) WHERE new GROUP BY host
SELECT id, lag(bytes) OVER (PARTITION BY upper(host) ORDER BY ts, id) AS s FROM log
SELECT id, lag(bytes + 1) OVER (PARTITION BY host ORDER BY ts, id) AS s, lag(coalesce(host, 'z')) OVER (PARTITION BY host ORDER BY ts, id) AS t FROM log
SELECT id, sum(bytes) FILTER (WHERE ok) OVER (PARTITION BY host ORDER BY ts, id ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) AS s FROM log
SELECT id, lag(bytes, 0) OVER (ORDER BY ts, id) AS s FROM log
SELECT id, row_number() OVER (PARTITION BY host ORDER BY ts, id) AS r, lag(id) OVER (PARTITION BY host ORDER BY ts, id) AS l FROM log
SELECT id, min(bytes) OVER (ORDER BY ts, id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM log ORDER BY id LIMIT 10
SELECT h, w, count(*) AS n FROM (SELECT host AS h, lag(kind) OVER (PARTITION BY host ORDER BY ts, id) AS w FROM log) GROUP BY h, w
SELECT host, count(*) AS n, sum(count(*)) OVER () AS p FROM log GROUP BY host
SELECT id, lag(bytes, 1, kind) OVER (PARTITION BY host ORDER BY ts, id) AS s, lag(host, 1, 'none') OVER (PARTITION BY host ORDER BY ts, id) AS t FROM log
SELECT id, bytes - lag(bytes) OVER (PARTITION BY host ORDER BY ts, id) AS d FROM log QUALIFY d > 3
SELECT id, sum(bytes) OVER (PARTITION BY ts) AS s FROM log
SELECT a.id, b.id AS j, lag(b.bytes) OVER (PARTITION BY a.host ORDER BY a.ts, a.id, b.id) AS s FROM log a JOIN other b ON a.host = b.host AND b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts
SELECT id, median(bytes) OVER (PARTITION BY host ORDER BY ts, id ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS s, count(DISTINCT kind) OVER (PARTITION BY host ORDER BY ts, id ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS c FROM log
SELECT id, CASE WHEN lag(ok) OVER (PARTITION BY host ORDER BY ts, id) IS DISTINCT FROM ok THEN 1 ELSE 0 END AS changed FROM log
SELECT host, sum(changed) AS n FROM (SELECT host, CASE WHEN lag(kind) OVER (PARTITION BY host ORDER BY ts, id) IS DISTINCT FROM kind THEN 1 ELSE 0 END AS changed FROM log) GROUP BY host
SELECT id, sum(bytes) OVER (PARTITION BY host ORDER BY ts ROWS 2 PRECEDING) - sum(bytes) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW) AS s FROM (SELECT max(id) AS id, max(host) AS host, sum(bytes) AS bytes, ts FROM log GROUP BY ts)
SELECT d, bytes FROM (SELECT id AS d, bytes, ts, lag(id) OVER (ORDER BY ts, id) AS l FROM log) WHERE l IS NULL
SELECT id, avg(bytes) OVER (ORDER BY ts, id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) AS s, stddev(x) OVER (ORDER BY ts, id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS t FROM log
SELECT DISTINCT host, lag(kind) OVER (PARTITION BY host ORDER BY ts, id) AS l FROM log
SELECT host, ROW_NUMBER() OVER (ORDER BY count(*) DESC, host) AS r FROM log WHERE host IS NOT NULL GROUP BY host
SELECT id, lag(ts) OVER (PARTITION BY host ORDER BY ts, id) AS l, lag(host) OVER (PARTITION BY host ORDER BY ts, id) AS m, lag(x) OVER (PARTITION BY kind ORDER BY ts, id) AS n FROM log
SELECT id, arg_max(x, ts) OVER (PARTITION BY kind ORDER BY ts, id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS n FROM (SELECT max(id) AS id, max(kind) AS kind, max(x) AS x, ts FROM log GROUP BY ts)
SELECT id, lag(id) OVER (PARTITION BY bytes % 3 ORDER BY ts, id) AS l, lag(id) OVER (PARTITION BY kind + 1 ORDER BY ts, id) AS m FROM log
SELECT id, row_number() OVER (PARTITION BY host ORDER BY ts, id) AS r, lag(id) OVER (PARTITION BY host ORDER BY ts, id) AS l FROM log
SELECT row_number() OVER (PARTITION BY host ORDER BY ts, id) AS r, id FROM log
SELECT id, mode(bytes) OVER (PARTITION BY host) AS s, stddev(bytes) OVER (PARTITION BY host ORDER BY ts) AS t FROM (SELECT id, host, ts, bytes % 2 AS bytes FROM log WHERE bytes = 3)
SELECT id, sum(bytes) OVER (PARTITION BY host ORDER BY ts) AS s FROM log
SELECT host, date_trunc('minute', ts) AS m, count(*) AS n, lag(count(*)) OVER (PARTITION BY host ORDER BY date_trunc('minute', ts)) AS d FROM log GROUP BY host, m
SELECT host, m, n, n - lag(n) OVER (PARTITION BY host ORDER BY m) AS d FROM (SELECT host, date_trunc('minute', ts) AS m, count(*) AS n FROM log GROUP BY ALL)
SELECT host, m, n, sum(n) OVER (PARTITION BY host ORDER BY m) AS d FROM (SELECT host, time_bucket(INTERVAL '1 minute', ts) AS m, count(*) AS n FROM log GROUP BY ALL)
SELECT date_trunc('week', ts) AS w, host, count(*) AS n FROM log GROUP BY ALL
SELECT date_trunc('week', ts + INTERVAL '3' DAY) AS w, count(*) AS n FROM log GROUP BY w
SELECT time_bucket('1 minute', ts) AS m, count(*) AS n FROM log GROUP BY 1
SELECT id, ts + id * INTERVAL '2' SECOND AS t, ts - INTERVAL '1' HOUR * kind AS u, id * (ts - TIMESTAMP '2026-01-01') AS v FROM log
SELECT id, epoch(ts - lag(ts) OVER (PARTITION BY host ORDER BY ts, id)) AS s, extract(epoch FROM INTERVAL '90.5' SECOND) AS e FROM log
SELECT host, avg(epoch(gap)) AS g FROM (SELECT host, ts - lag(ts) OVER (PARTITION BY host ORDER BY ts, id) AS gap FROM log) GROUP BY host
SELECT id FROM (SELECT id, ts - lag(ts) OVER (ORDER BY ts, id) AS gap FROM log) WHERE gap > INTERVAL '5 seconds'
SELECT host, session, count(*) AS n FROM (SELECT host, ts, id, sum(new) OVER (PARTITION BY host ORDER BY ts, id ROWS UNBOUNDED PRECEDING) AS session FROM (SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY host ORDER BY ts, id) <= INTERVAL '10 seconds' THEN 0 ELSE 1 END AS new FROM log)) GROUP BY host, session
