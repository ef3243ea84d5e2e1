SELECT id, a + b AS p, a - c AS q, a * b AS r, b * 2 AS s, c / 3 AS t, -a AS u FROM dec
SELECT id, a + 1 AS p, a * 0.5 AS q, a > b AS r, a = 0 AS s, b % 3 AS t, abs(a) AS u FROM dec
SELECT id, round(a, 2) AS p, round(a) AS q, floor(a) AS r, ceil(b) AS s, trunc(c) AS t, sign(a) AS u FROM dec
SELECT k, sum(a) AS p, avg(a) AS q, min(c) AS r, max(b) AS s, sum(c) AS t, sum(a * b) AS u FROM dec GROUP BY k
SELECT k, stddev(a) AS p, var_samp(b) AS q, sum(a) / count(a) AS r, median(t) AS s FROM dec GROUP BY k
SELECT id, CAST(a AS INTEGER) AS p, CAST(a AS DECIMAL(10, 1)) AS q, CAST(b AS VARCHAR) AS r, CAST(c AS DOUBLE) AS s FROM dec
SELECT id, CAST('1.2345' AS DECIMAL(10, 2)) AS p, CAST(g AS DECIMAL(10, 1)) AS q FROM dec WHERE g < 100
SELECT id, u64 > t AS p, u64 = us AS q, greatest(t, us) AS r FROM dec
SELECT k, sum(t) AS p, sum(us) AS q, avg(t) AS r, max(u64) AS s, min(u64) AS u, count(DISTINCT t) AS v FROM dec GROUP BY k
SELECT id, f = 0.1 AS p, f > 2 AS q, f + 1 AS r, f * f AS s, CAST(f AS DOUBLE) AS t FROM dec
SELECT id, rank() OVER (ORDER BY g) AS r FROM dec
SELECT g, count(*) AS n FROM dec GROUP BY g
SELECT DISTINCT g FROM dec
SELECT a.id, b.id AS j FROM dec a JOIN dec b ON a.g = b.g AND a.id % 4 = b.id % 4
SELECT a.id, b.id AS j FROM dec a JOIN dec b ON a.t = b.us
SELECT id FROM dec ORDER BY g, id LIMIT 9
SELECT id, CAST(g AS INTEGER) AS p, round(g) AS q, CAST(f AS INTEGER) AS r FROM dec WHERE g < 100 AND f < 100
SELECT id, floor(g) AS p, ceil(g) AS q, round(g, 1) AS r FROM dec
SELECT id, g / 0 AS p, a / 0 AS q, t / 0 AS r, 0 / t AS s FROM dec
SELECT id, 7 // 2 AS a, -7 // 2 AS b, 7 % -3 AS c, -7 % 3 AS d, 7 / 2 AS e, 2 ** 3 AS f1, 1e3 AS g1, .5 AS h FROM dec
SELECT id, ts + INTERVAL '1' DAY AS p, ts - INTERVAL '2 hours' AS q, ts + INTERVAL '1 hour 30 minutes' AS r, INTERVAL '5' MINUTE + ts AS s FROM txt
SELECT id, ts AS a, w AS b, z AS c FROM zoned
SELECT id, z > ts AS a, w > TIMESTAMP '2026-01-01 00:01:00' AS b, z = w AS c, z - ts AS d FROM zoned
SELECT id, z::DATE AS a, z::TIMESTAMP AS b, w::TIMESTAMPTZ AS c, z::VARCHAR AS d FROM zoned
SELECT id FROM zoned WHERE ts > '2026-01-01 00:02:00'
SELECT id FROM zoned WHERE ts > '2026-01-01 02:02:00+02'
SELECT id FROM zoned WHERE ts >= TIMESTAMPTZ '2026-01-01 00:02:00+00'
SELECT id, extract(hour FROM z) AS a, date_trunc('minute', z) AS b, time_bucket(INTERVAL '10 seconds', z) AS c, epoch(z) AS d, strftime(z, '%H:%M') AS e FROM zoned
SELECT id, coalesce(z, ts) AS a, greatest(z, ts) AS b, CASE WHEN k = 'a' THEN z ELSE w END AS c FROM zoned
SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM zoned GROUP BY m
SELECT time_bucket(INTERVAL '30 seconds', ts) AS m, k, count(z) AS n FROM zoned GROUP BY ALL
SELECT k, min(z) AS a, max(w) AS b, max(z) - min(z) AS c, count(DISTINCT z) AS d FROM zoned GROUP BY k
SELECT a.id, b.id AS j FROM zoned a JOIN log b ON a.ts = b.ts
SELECT a.id, b.id AS j FROM zoned a JOIN zoned b ON a.z = b.ts
SELECT a.id, b.id AS j FROM zoned a JOIN zoned b ON a.w = b.z
SELECT id, z IN ('2026-01-01 00:01:00', NULL) AS a FROM zoned
SELECT id, z + INTERVAL '1' DAY AS a, z - INTERVAL '1' HOUR AS b, z - TIMESTAMPTZ '2026-01-01 00:00:00+00' AS c FROM zoned
SELECT id, upper(s) AS a, lower(s) AS b, length(s) AS c, trim(s) AS d, ltrim(s) AS e, rtrim(s) AS f, reverse(s) AS g FROM txt
SELECT id, substring(s FROM 2 FOR 3) AS a, position('b' IN s) AS b, strpos(s, '_') AS c, instr(s, 'zz') AS d FROM txt
SELECT id, starts_with(s, 'a') AS a, ends_with(s, 'b') AS b, contains(s, ',') AS c, prefix(s, 'x') AS d, suffix(s, 'y') AS e FROM txt
SELECT id, lpad(s, 5, '*') AS a, rpad(s, 5, '*') AS b, repeat(s, 2) AS c, repeat(s, 0) AS d FROM txt
SELECT id, s < u AS a, s = u AS b, s > 'a' AS c, s BETWEEN 'a' AND 'b' AS d, s IN ('abc', 'ABC') AS e, s <> '' AS f FROM txt
SELECT id, greatest(s, u) AS a, least(s, u) AS b, coalesce(s, u) AS c, nullif(s, u) AS d FROM txt
SELECT min(s) AS a, max(s) AS b, count(DISTINCT s) AS c, count(s) AS d FROM txt
SELECT s, count(*) AS n FROM txt GROUP BY s
SELECT id FROM txt ORDER BY s DESC, id LIMIT 10
SELECT id FROM txt ORDER BY upper(s), id LIMIT 10
SELECT id, row_number() OVER (PARTITION BY u ORDER BY s, id) AS r FROM txt
SELECT id, CAST(s AS INTEGER) AS a FROM txt WHERE s = '12'
SELECT id, CAST(id AS VARCHAR) AS a, CAST(id > 3 AS VARCHAR) AS b, CAST(id % 2 AS BOOLEAN) AS c, CAST(id > 3 AS INTEGER) AS d, CAST(id AS DOUBLE) / 3 AS e FROM txt
SELECT id, a + 1 AS p FROM dec
SELECT id, a * 0.5 AS p FROM dec
SELECT id, a > b AS p, a = 0 AS q FROM dec
SELECT id, b % 3 AS p FROM dec
SELECT id, abs(a) AS p, abs(g) AS q FROM dec
SELECT id, CAST('1.2345' AS DECIMAL(10, 2)) AS p, CAST('-1.235' AS DECIMAL(10, 2)) AS q, DECIMAL '7' AS r FROM dec
SELECT id, greatest(z, ts) AS a, least(z, ts, TIMESTAMPTZ '2026-01-01 00:02:00+00') AS b, greatest(w, TIMESTAMP '2026-01-01 00:01:00') AS c FROM zoned
SELECT id, ts FROM zoned UNION ALL SELECT id, z FROM zoned WHERE z IS NOT NULL
SELECT id, ts FROM zoned UNION ALL SELECT id, z FROM zoned
SELECT count(*) AS n, time_bucket(INTERVAL '60 seconds', ts) AS w FROM (SELECT id, ts FROM zoned UNION ALL SELECT id, z FROM zoned WHERE z IS NOT NULL) GROUP BY w
SELECT id, substr(s, 2) AS a, substring(s, 1, 2) AS b, substr(s, -2) AS c, substr(s, 0, 2) AS d, substr(s, -2, 1) AS e FROM txt
SELECT id, left(s, 2) AS g, right(s, 2) AS h, left(s, -1) AS i, right(s, -1) AS j, left(s, 0) AS k, right(s, 0) AS l FROM txt
SELECT id, replace(s, 'a', 'XX') AS a, replace(s, '', 'X') AS b FROM txt
SELECT id, s LIKE 'a%' AS a, s LIKE '%\%%' AS b, s LIKE 'a$%b' ESCAPE '$' AS c, s ILIKE 'A_B' AS d, s NOT LIKE '%b' AS e FROM txt
SELECT id, regexp_matches(s, '^[a-z]+$') AS b, regexp_replace(s, '[aeiou]', '*', 'g') AS c, regexp_extract(s, '([0-9]+)', 1) AS d, regexp_replace(s, 'a', 'b') AS e, regexp_extract(s, '(a)(b)', 2) AS f, regexp_full_match(s, 'a.b') AS g FROM txt
SELECT id, split_part(s, ',', 1) AS a, split_part(s, ',', 2) AS b, split_part(s, ',', 9) AS d FROM txt
SELECT id, regexp_replace(s, '(a)(.)', '\2\1') AS a, regexp_matches(s, '(?i)ABC') AS b, regexp_extract(s, 'z(x)?') AS c FROM txt
SELECT id, power(t, 2) AS p, sqrt(us) AS q, exp(b / 100) AS r, log10(us + 1.0) AS t1 FROM dec
SELECT id, replace(s, '', 'X') AS a, regexp_replace(s, '', 'X', 'g') AS b, regexp_replace(s, 'x*', '-', 'g') AS c FROM txt
SELECT id, regexp_extract(s, '[(]?(a)', 1) AS a, regexp_extract(s, '([^,]*),([^(]*)', 2) AS b, regexp_extract(s, '(?:a)(b)', 1) AS c, regexp_extract(s, '([[:alpha:]]+)', 1) AS d FROM txt
SELECT id, ts FROM zoned UNION SELECT id, z FROM zoned
SELECT id, time_bucket(INTERVAL '7 seconds', ts) AS a, time_bucket(INTERVAL '1 day', day) AS b FROM log
WITH a AS (WITH b AS (SELECT id, host FROM log WHERE id < 30) SELECT host, count(*) AS n FROM b GROUP BY host) SELECT * FROM a WHERE n > 2
WITH a AS (SELECT * FROM log WHERE kind = 1), b AS (SELECT * FROM a WHERE ok), c AS (SELECT a.id, b.bytes FROM a JOIN b ON a.id = b.id) SELECT count(*) AS n, sum(bytes) AS s FROM c
WITH log AS (SELECT * FROM log WHERE id < 5) SELECT id FROM log
WITH a AS (SELECT id FROM log), b AS (SELECT id FROM a UNION ALL SELECT id FROM a) SELECT id, count(*) AS n FROM b GROUP BY id
WITH a AS (SELECT host, max(bytes) AS m FROM log GROUP BY host) SELECT l.id FROM log l JOIN a ON l.host = a.host AND l.bytes = a.m
SELECT * FROM (SELECT * FROM (SELECT id, host FROM log WHERE ok) WHERE host = 'a') ORDER BY id
SELECT q.id, q.n FROM (SELECT a.id, b.n FROM log a JOIN (SELECT host, count(*) AS n FROM log GROUP BY host HAVING count(*) > 3) b ON a.host = b.host) q WHERE q.n % 2 = 0
WITH a AS (SELECT id % 3 AS g, sum(bytes) AS s FROM log GROUP BY g) SELECT avg(s) AS m, max(g) AS g FROM a
SELECT id, (SELECT count(*) FROM other b WHERE b.kind = a.kind) AS n, (SELECT min(bytes) FROM other) AS m FROM log a WHERE a.bytes > (SELECT avg(bytes) FROM log)
SELECT id FROM log a WHERE bytes = (SELECT max(bytes) FROM log b WHERE b.host = a.host)
SELECT id, nullif(NULL, 1) AS p, nullif(1, NULL) AS q, nullif(kind, NULL) AS r FROM log
SELECT id, time_bucket(INTERVAL '1 day', day) AS b, time_bucket(INTERVAL '36 hours', day) AS c, time_bucket(INTERVAL '7 days', day) AS d FROM log
SELECT id, ts FROM log UNION ALL SELECT id, day FROM log
SELECT id, day AS ts FROM log UNION ALL SELECT id, ts FROM log
SELECT CASE WHEN bytes > 5 THEN 'big' END AS c, count(*) AS n FROM log GROUP BY 1 HAVING c IS NOT NULL
SELECT host, sum(bytes) AS bytes FROM log GROUP BY host HAVING sum(bytes) > 50
SELECT sum(bytes) AS s FROM log WHERE id < 0 HAVING sum(bytes) IS NULL
SELECT count(*) AS s FROM log WHERE id < 0 HAVING count(*) = 0
SELECT count(*) AS s FROM log HAVING count(*) = 0
SELECT count(*) AS s FROM log HAVING count(*) > 0
SELECT count(*) + 1 AS s FROM log WHERE id < 0 HAVING count(*) = 0 ORDER BY s
SELECT max(id) AS m FROM log WHERE id < 0 HAVING count(*) = 0 AND max(id) IS NULL
SELECT count(*) AS n FROM log HAVING count(*) >= 0 ORDER BY n LIMIT 1
SELECT n FROM (SELECT count(*) AS n FROM log HAVING count(*) >= 0)
SELECT 1 AS one FROM log WHERE id < 0 HAVING count(*) = 0
SELECT id, (SELECT count(*) FROM other b WHERE b.host = a.host AND b.ts BETWEEN a.ts - INTERVAL '20' SECOND AND a.ts) AS n FROM log a
SELECT id, (SELECT max(b.bytes) FROM other b WHERE b.ts BETWEEN a.ts - INTERVAL '20' SECOND AND a.ts + INTERVAL '5' SECOND) AS n FROM log a
SELECT id FROM log a WHERE a.bytes > (SELECT avg(b.bytes) FROM other b WHERE b.kind = a.kind AND b.ts > a.ts - INTERVAL '60' SECOND AND b.ts <= a.ts)
SELECT id, (SELECT sum(b.x) + count(*) FROM other b WHERE b.host = a.host AND b.kind = a.kind AND b.ok AND b.ts BETWEEN a.ts - INTERVAL '90' SECOND AND a.ts + INTERVAL '90' SECOND) AS n, (SELECT min(bytes) FROM other) AS m FROM log a
SELECT id, EXISTS (SELECT 1 FROM other b WHERE b.host = a.host AND b.ts BETWEEN a.ts - INTERVAL '9' SECOND AND a.ts) AS n FROM log a
SELECT id FROM log a WHERE EXISTS (SELECT 1 FROM other b WHERE b.host = a.host AND b.ts BETWEEN a.ts - INTERVAL '9' SECOND AND a.ts) OR a.bytes > 15
SELECT id, (SELECT count(*) FROM other b WHERE b.ts < a.ts) AS n FROM log a
SELECT id, (SELECT count(*) FROM other b WHERE b.ts = a.ts AND b.id % 7 = a.id % 7) AS n FROM log a
SELECT id, (SELECT max(b.id) FROM log b WHERE b.ts < a.ts AND b.host = a.host) AS prev FROM log a
SELECT host, count(*) AS n FROM log a WHERE (SELECT count(*) FROM other b WHERE b.host = a.host AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '30' SECOND) > 2 GROUP BY host
WITH c AS (SELECT host, count(*) AS n FROM log GROUP BY host) SELECT * FROM c WHERE n IN (SELECT id FROM other)
SELECT host, count(*) AS n FROM log GROUP BY host HAVING host IN (SELECT host FROM other WHERE bytes > 18)
SELECT host, kind, count(*) AS n FROM log GROUP BY host, kind HAVING kind IN (SELECT kind FROM other) OR count(*) > 4
SELECT host, count(*) AS n FROM log GROUP BY host HAVING host || 'x' IN (SELECT host || 'x' FROM other WHERE bytes > 18)
SELECT host, count(*) AS n FROM log GROUP BY host HAVING upper(host) NOT IN (SELECT upper(host) FROM other WHERE bytes > 18)
SELECT a.id, b.id AS j FROM log a FULL JOIN other b ON a.kind = b.kind AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '15' SECOND
SELECT a.id, b.id AS j FROM log a FULL JOIN other b ON a.id = b.id AND a.kind = b.kind
SELECT a.id, b.id AS j FROM log a FULL JOIN other b ON a.id = b.id AND a.bytes < b.bytes
SELECT a.id, b.id AS j FROM log a FULL JOIN other b ON a.id = b.id WHERE a.kind = 1
SELECT a.id, b.id AS j FROM log a FULL JOIN other b ON a.id = b.id WHERE coalesce(a.kind, b.kind) = 1
SELECT coalesce(a.host, b.host) AS h, count(*) AS n FROM log a FULL JOIN other b ON a.id = b.id + 5 GROUP BY h
SELECT id FROM log WHERE kind NOT IN (SELECT kind FROM other WHERE kind IS NOT NULL)
SELECT id FROM log WHERE kind NOT IN (SELECT kind FROM other)
SELECT id FROM log WHERE kind NOT IN (SELECT kind FROM other WHERE false)
SELECT id FROM log WHERE (kind IN (SELECT kind FROM other WHERE kind = 1)) IS NULL
SELECT id FROM log WHERE NOT (kind IN (SELECT kind FROM other WHERE bytes > 5))
SELECT id, kind IN (SELECT kind FROM other WHERE id < 3) AS c FROM log
SELECT id FROM log a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE b.kind = a.kind AND b.host = 'a')
SELECT id FROM log a WHERE EXISTS (SELECT 1 FROM other b WHERE b.id = a.id) AND NOT EXISTS (SELECT 1 FROM other c WHERE c.kind = a.kind AND c.bytes < 0)
SELECT a.id, b.id AS j, c.id AS k FROM log a FULL JOIN other b ON a.id = b.id + 3 FULL JOIN log c ON c.id = b.id
SELECT host, a.id, b.id AS j FROM log a FULL JOIN other b USING (host) WHERE b.id < 5 OR a.id < 5
SELECT a.id, b.id AS j FROM log a LEFT JOIN (SELECT * FROM other WHERE kind = 1) b ON a.host = b.host AND a.ts = b.ts
SELECT a.id, b.n FROM log a LEFT JOIN (SELECT host, count(*) AS n FROM other GROUP BY host) b ON a.host = b.host
SELECT a.id, coalesce(b.n, 0) AS n FROM log a LEFT JOIN (SELECT kind, count(*) AS n FROM other GROUP BY kind) b ON a.kind = b.kind
SELECT a.id, b.m FROM log a ASOF JOIN (SELECT host, ts, max(id) AS m FROM other GROUP BY host, ts) b ON a.host = b.host AND a.ts >= b.ts
SELECT a.id, b.m FROM log a ASOF LEFT JOIN (SELECT kind, host, ts, max(id) AS m FROM other GROUP BY kind, host, ts) b ON a.host = b.host AND a.kind = b.kind AND a.ts >= b.ts
SELECT a.id, b.m FROM log a ASOF LEFT JOIN (SELECT ts, max(id) AS m FROM other GROUP BY ts) b ON a.ts >= b.ts
SELECT a.id, b.m FROM log a ASOF LEFT JOIN (SELECT ts, max(id) AS m FROM other GROUP BY ts) b ON b.ts <= a.ts
SELECT a.id, b.m FROM log a ASOF JOIN (SELECT host, ts, max(id) AS m FROM other WHERE kind = 1 GROUP BY host, ts) b ON a.host = b.host AND a.ts >= b.ts WHERE a.ok
SELECT NULL AS a, host FROM log UNION ALL SELECT bytes, host FROM other
SELECT kind FROM log UNION ALL SELECT NULL FROM other
SELECT kind, 'l' AS w FROM log UNION ALL SELECT price, 'o' FROM other
SELECT host, 1 AS one FROM log UNION SELECT host, 2 FROM other
SELECT host FROM log UNION SELECT host FROM other
SELECT day FROM log UNION ALL SELECT ts FROM other
SELECT host FROM log UNION ALL SELECT host FROM other UNION SELECT 'z' FROM log
SELECT host FROM log UNION SELECT host FROM other UNION ALL SELECT 'z' FROM log WHERE id = 1
SELECT host, count(*) AS n FROM (SELECT host FROM log UNION ALL SELECT host FROM other) GROUP BY host
(SELECT id FROM log WHERE id < 3) UNION ALL (SELECT id FROM other WHERE id < 2)
SELECT id FROM log UNION ALL SELECT id FROM other ORDER BY id LIMIT 7
SELECT host AS h, sum(n) AS n FROM (SELECT host, count(*) AS n FROM log GROUP BY host UNION ALL SELECT host, count(*) FROM other GROUP BY host) GROUP BY host
SELECT count(*) AS n FROM (SELECT DISTINCT host, kind FROM log)
SELECT id FROM log QUALIFY rank() OVER (PARTITION BY host ORDER BY kind) <= 2
SELECT id FROM log QUALIFY dense_rank() OVER (PARTITION BY host ORDER BY kind DESC) = 1
SELECT id FROM log QUALIFY rank() OVER (ORDER BY bytes DESC) < 5
SELECT id FROM log QUALIFY rank() OVER (ORDER BY x DESC, kind) <= 5
SELECT id, row_number() OVER (PARTITION BY kind ORDER BY bytes, id) AS r FROM log QUALIFY r <= 2
SELECT host, sum(bytes) AS s FROM log GROUP BY host QUALIFY rank() OVER (ORDER BY sum(bytes) DESC) = 1
SELECT host, kind, count(*) AS n FROM log GROUP BY host, kind QUALIFY row_number() OVER (PARTITION BY host ORDER BY count(*) DESC, kind) = 1
SELECT * FROM (SELECT id, rank() OVER (PARTITION BY host ORDER BY day) AS r FROM log) WHERE r = 1 AND id > 10
SELECT * FROM (SELECT id, bytes, row_number() OVER (PARTITION BY host ORDER BY id) AS r FROM log) WHERE bytes > 3 AND r <= 2
SELECT * FROM (SELECT id, bytes, row_number() OVER (PARTITION BY host ORDER BY id) AS r FROM log) WHERE r <= 2 OR bytes > 15
SELECT host, max(r) AS m FROM (SELECT host, row_number() OVER (PARTITION BY host ORDER BY id) AS r FROM log) GROUP BY host
SELECT count(*) AS n FROM (SELECT id, row_number() OVER (PARTITION BY host ORDER BY id) AS r FROM log) WHERE r <= 3
SELECT count(*) AS n FROM log HAVING count(*) > 1000
SELECT count(*) AS n FROM log HAVING count(*) > 10
SELECT sum(bytes) AS n FROM log WHERE id < 0 HAVING sum(bytes) IS NULL
SELECT max(bytes) AS n FROM log HAVING bool_and(ok) IS NULL OR true
SELECT host FROM log GROUP BY host HAVING max(kind) = 2 AND NOT bool_or(ok) IS NULL
SELECT host, count(*) AS n FROM log GROUP BY host HAVING host IS NOT NULL
SELECT host, count(*) AS n FROM log GROUP BY host HAVING host IN ('a', 'b')
SELECT host, count(*) AS n FROM log GROUP BY host HAVING host NOT IN (SELECT host FROM other WHERE bytes > 18)
SELECT host, count(*) AS n FROM log GROUP BY host HAVING count(*) > (SELECT avg(id) / 5 FROM other)
SELECT host, count(*) AS n FROM log a GROUP BY host HAVING EXISTS (SELECT 1 FROM other b WHERE b.host = a.host AND b.bytes > 17)
SELECT host, avg(bytes) AS n FROM log GROUP BY host HAVING n > 5
SELECT DISTINCT host FROM log GROUP BY host, kind HAVING count(*) > 5
SELECT id, ifnull(bytes, -1) AS c, nullif(host, 'a') AS d, nullif(kind, bytes) AS e FROM log
SELECT id, nullif(x, 7) AS a, nullif(price, 1) AS b, nullif(NULL, 1) AS c FROM log
SELECT id, greatest(x, bytes, NULL) AS a, least(host, 'b') AS b, greatest(day, DATE '2026-01-05') AS c FROM log
SELECT id, least(ts, TIMESTAMP '2026-01-01 00:02:00') AS a, greatest(price, 2) AS b FROM log
SELECT id, day + 1 AS p, day - 1 AS q, day - DATE '2025-12-25' AS r, day + INTERVAL '1' DAY AS s, ts - day AS t FROM log
SELECT id, extract(year FROM ts) AS a, extract(month FROM day) AS b, extract(dow FROM ts) AS c, extract(isodow FROM day) AS d, extract(doy FROM ts) AS e, extract(week FROM day) AS f, extract(quarter FROM ts) AS g, extract(second FROM ts) AS h, extract(milliseconds FROM ts) AS i, extract(hour FROM ts) AS j FROM log
SELECT id, strftime(ts, '%Y-%m-%d %H:%M:%S') AS a, strftime(day, '%d.%m.%y') AS b, strftime(ts, '%j') AS c FROM log
SELECT id, CAST('2026-01-01' AS DATE) AS a, CAST('2026-01-01 10:11:12.5' AS TIMESTAMP) AS b, DATE '2026-02-28' + 1 AS c FROM log
SELECT id FROM log WHERE day IN (DATE '2026-01-01', '2026-02-28')
SELECT a.id, b.id AS j FROM log a JOIN other b ON b.ts - a.ts BETWEEN INTERVAL '0' SECOND AND INTERVAL '4' SECOND AND a.host = b.host
SELECT a.id, b.id AS j FROM log a JOIN other b ON a.host = b.host WHERE b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts
SELECT id, CAST(x AS SMALLINT) AS a, CAST(bytes AS TINYINT) AS b, CAST(bytes AS FLOAT) AS c, CAST(ok AS INTEGER) AS d FROM log
SELECT id FROM log WHERE lower(host) IN ('a') OR length(host) IS NULL
SELECT id, date_part('minute', ts) AS a, dayname(day) AS c, monthname(day) AS d FROM log
SELECT sum(bytes) * 1.0 / count(*) AS a, sum(bytes) / count(bytes) AS b, max(bytes) % 3 AS c, -min(bytes) AS d, abs(min(x)) AS e, coalesce(max(host), '?') || '!' AS f FROM log
SELECT coalesce(host, 'none') AS host, count(*) AS n FROM log GROUP BY 1
SELECT bytes + 1 AS bytes FROM log ORDER BY bytes, id LIMIT 5
SELECT a.id, b.id AS j FROM log a LEFT JOIN other b ON a.host = b.host AND a.kind = b.kind AND b.ts BETWEEN a.ts - INTERVAL '20' SECOND AND a.ts + INTERVAL '20' SECOND
SELECT a.id, b.id AS j FROM log a LEFT JOIN other b ON a.id = b.id WHERE b.host IS NULL
SELECT a.id, b.id AS j FROM log a RIGHT JOIN other b ON a.id = b.id AND b.kind = 1 AND a.bytes > 2
SELECT a.id FROM log a ANTI JOIN other b ON a.kind = b.kind AND a.bytes > b.bytes
SELECT * FROM log a LEFT JOIN other b USING (host, kind) WHERE a.id < 5
SELECT a.id, b.id AS j FROM log a, other b WHERE a.id = b.id AND (a.kind = 1 OR b.kind = 1)
SELECT a.id, b.id AS j FROM log a JOIN other b ON a.ok = b.ok AND a.id = b.id
SELECT DISTINCT host FROM log ORDER BY host DESC LIMIT 2
SELECT DISTINCT x FROM log
SELECT count(DISTINCT host) AS n, count(DISTINCT kind) AS m FROM log
SELECT id, CASE WHEN bytes > 5 THEN 'big' WHEN bytes IS NULL THEN NULL ELSE 'small' END AS c FROM log
SELECT id, CASE WHEN ok THEN bytes ELSE x END AS c FROM log
SELECT id, coalesce(kind, bytes, 0) AS c, coalesce(NULL, host, 'q') AS d FROM log
SELECT id, NOT ok AS a, ok AND NULL AS b, ok OR NULL AS c, ok = NULL AS d FROM log
SELECT id, (bytes > 3) = ok AS a, ok <> (kind = 1) AS b FROM log
SELECT id, weekday(ts) a, dayofweek(ts) b, isodow(ts) c, weekofyear(ts) d, yearweek(ts) e, weekday(day) f FROM log
SELECT id, date_part('weekday', ts) a FROM log
SELECT id, last_day(ts) a, last_day(day) b FROM log
SELECT id, atan2(x, bytes) a, atan(x) b, asin(x / 10) c, acos(x / 10) d FROM log
SELECT id, isinf(g) a, isnan(g) b, isfinite(g) c, isinf(f) d FROM dec
SELECT id, isinf(k) a, isinf(a) FROM dec
SELECT id, degrees(x) a, radians(x) b, pi() c FROM log
SELECT id, split_part(s, ',', -1) a, split_part(s, ',', -2) b, split_part(s, ',', -3) c, split_part(s, ',', -9) d FROM txt
SELECT id, split_part(s, ',', 0) a, split_part(s, ',', 1) b, split_part(s, ',', 2) c, split_part(s, 'a', -1) d FROM txt
SELECT id, split_part(s, ',b', -1) a, split_part(s, '(', 1) b, split_part(s, 'x\', 2) c, split_part(s, ' ', -2) d FROM txt
SELECT id, date_diff('day', day, DATE '2026-01-05') a, datediff('month', day, ts) b, date_diff('week', ts, day) c, date_diff('quarter', day, ts) d, date_diff('year', day, ts) e FROM log
SELECT id, date_diff('second', TIMESTAMP '2026-01-01 00:02:00.5', ts) a, date_diff('minute', day, ts) b, date_diff('hour', ts, day) c, date_diff('millisecond', day, ts) d, date_diff('microsecond', ts, TIMESTAMP '1960-01-01') e FROM log
SELECT id, date_diff('day', z, ts) a, date_diff('hour', ts, z) b FROM zoned
SELECT id, date_diff('day', w, w) a, date_diff('hours', w, TIMESTAMP '2026-01-01 00:00:00') b FROM zoned
SELECT id, TRY_CAST(s AS INTEGER) a, TRY_CAST(s AS BIGINT) b, TRY_CAST(s AS TINYINT) c FROM txt
SELECT id, TRY_CAST(s AS DOUBLE) a, TRY_CAST(s AS FLOAT) b FROM txt
SELECT id, TRY_CAST(s AS BOOLEAN) a FROM txt
SELECT id, TRY_CAST(s AS DATE) a, TRY_CAST(s AS TIMESTAMP) b FROM txt
SELECT id, TRY_CAST(s AS DECIMAL(10, 2)) a, TRY_CAST(s AS DECIMAL(2, 1)) b FROM txt
SELECT id, TRY_CAST(bytes AS TINYINT) a, TRY_CAST(bytes AS UTINYINT) b, TRY_CAST(bytes AS VARCHAR) c, TRY_CAST(x AS INTEGER) d, TRY_CAST(ts AS DATE) e, TRY_CAST(bytes AS BOOLEAN) f FROM log
SELECT id, TRY_CAST(a AS TINYINT) a, TRY_CAST(c AS INTEGER) b, TRY_CAST(c AS DECIMAL(8, 2)) c, TRY_CAST(g AS INTEGER) d, TRY_CAST(f AS BIGINT) e, TRY_CAST(u64 AS INTEGER) f, TRY_CAST(u64 AS BIGINT) g FROM dec
SELECT id, TRY_CAST(g AS DECIMAL(4, 1)) a, TRY_CAST(us AS SMALLINT) b, TRY_CAST(t AS UTINYINT) c, TRY_CAST(f AS DECIMAL(9, 3)) d, TRY_CAST(a AS DOUBLE) e FROM dec
SELECT count(*) AS n, sum(TRY_CAST(s AS BIGINT)) AS b FROM txt WHERE TRY_CAST(s AS DOUBLE) IS NOT NULL
SELECT id, xor(bytes, 3) a, bytes & 3 b, bytes | 4 c, ~bytes e, kind & bytes f FROM log
SELECT id, t & 3 a, us | 5 b, ~t c FROM dec
SELECT id, date_add(ts, INTERVAL 5 MINUTE) a, date_add(day, INTERVAL 5 DAY) b FROM log
SELECT id, s SIMILAR TO '[a-z]+' a, s NOT SIMILAR TO 'a.*' b FROM txt
SELECT id, position('a' IN s) a, strpos(s, 'a') b, instr(s, '😀') c, strpos(s, 'zz') d, strpos(s, '') e FROM txt
SELECT id, strlen(s) a, length(s) b FROM txt
SELECT a.id, b.id AS i FROM log a JOIN other b ON a.host IS NOT DISTINCT FROM b.host AND a.kind = b.kind
SELECT a.id, b.id AS i FROM log a JOIN other b ON a.host IS NOT DISTINCT FROM b.host
SELECT a.id, b.id AS i FROM log a LEFT JOIN other b ON a.kind IS NOT DISTINCT FROM b.kind AND a.bytes = b.bytes
SELECT a.id, b.id AS i FROM log a LEFT JOIN other b ON a.kind IS NOT DISTINCT FROM b.bytes
SELECT a.id, b.id AS i FROM log a RIGHT JOIN other b ON a.day IS NOT DISTINCT FROM b.day AND a.kind = b.kind AND a.id > 20
SELECT a.id, b.id AS i FROM log a FULL JOIN other b ON a.price IS NOT DISTINCT FROM b.price AND a.x IS NOT DISTINCT FROM b.x
SELECT a.id, b.id AS i FROM log a JOIN other b ON a.ok IS NOT DISTINCT FROM b.ok AND a.ts IS NOT DISTINCT FROM b.ts
SELECT a.id, b.id AS i FROM zoned a JOIN zoned b ON a.z IS NOT DISTINCT FROM b.z AND a.id = b.id + 1
SELECT a.id, b.id AS i FROM zoned a JOIN zoned b ON a.w IS NOT DISTINCT FROM b.w
SELECT a.id, b.id AS i FROM log a JOIN other b ON coalesce(a.host, 'z') IS NOT DISTINCT FROM upper(b.host)
SELECT a.id, b.id AS i FROM log a JOIN other b ON a.bytes + b.bytes = 7
SELECT a.id, b.id AS i FROM log a JOIN other b ON a.bytes + b.bytes = 7 AND a.host = b.host
SELECT a.id, b.id AS i FROM log a JOIN other b ON a.bytes - b.bytes = 1
SELECT a.id, b.id AS i FROM log a JOIN other b ON b.bytes - a.bytes = -2
SELECT a.id, b.id AS i FROM log a LEFT JOIN other b ON 3 = (b.bytes - (a.bytes - 1))
SELECT a.id, b.id AS i FROM log a, other b WHERE a.id + b.id = 30
SELECT a.id FROM log a WHERE EXISTS (SELECT 1 FROM other b WHERE b.host IS NOT DISTINCT FROM a.host AND b.bytes > 12)
SELECT a.id FROM log a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE b.kind IS NOT DISTINCT FROM a.kind AND b.bytes = 3)
SELECT a.id FROM log a SEMI JOIN other b ON a.host IS NOT DISTINCT FROM b.host
SELECT a.id FROM log a ANTI JOIN other b ON a.bytes IS NOT DISTINCT FROM b.bytes
SELECT id, (9007199254740993 + id)::DOUBLE AS a, round(g * 1e300, 3) AS b, (9007199254740993 + id) / 2 AS c FROM dec
SELECT id, ok::DECIMAL(4,1) a, price::BOOLEAN b, ok::INTEGER c, bytes::BOOLEAN d FROM log
SELECT sum(bytes + 9007199254740993) a, avg(bytes + 9007199254740993) b FROM log
SELECT id, u64 / 2 a, sqrt(u64) b, u64::FLOAT c FROM dec
SELECT id, s::VARCHAR a, CAST(s AS VARCHAR) b, s || '' c FROM txt
SELECT id, day + 7 AS a FROM log
SELECT sum(CASE WHEN host LIKE 'a%' THEN bytes END) s, count(CASE WHEN ok THEN 1 END) c FROM log
SELECT host, count(*) n FROM log WHERE host LIKE 'a_' ESCAPE '\' OR host NOT ILIKE 'B%' GROUP BY host
SELECT id, if(ok, 1, 2) a, CASE ok WHEN TRUE THEN 'y' END b FROM log
SELECT id FROM log WHERE id IN (1, NULL, 3)
SELECT id FROM log WHERE id NOT IN (1, NULL, 3)
SELECT count(*) FROM log a JOIN other b ON a.host IS NOT DISTINCT FROM b.host AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '20' SECOND
SELECT a.id, b.id i FROM log a ASOF JOIN other b ON a.host IS NOT DISTINCT FROM b.host AND a.ts >= b.ts
SELECT host, date_diff('hour', min(ts), max(ts)) h, last_day(max(day)) l FROM log GROUP BY host
SELECT host FROM log GROUP BY host HAVING TRY_CAST(host AS INTEGER) IS NULL
SELECT TRY_CAST(host AS INTEGER) k, count(*) n FROM log GROUP BY TRY_CAST(host AS INTEGER)
SELECT bytes & 1 k, xor(kind, 1) x, count(*) n FROM log GROUP BY ALL
