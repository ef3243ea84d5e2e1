SELECT id, s LIKE u AS a, s ILIKE u AS b, s NOT LIKE u AS c, s NOT ILIKE upper(u) AS d, s LIKE '%' || u || '%' AS e FROM txt
SELECT id, md5(s) AS a, sha256(s) AS b, md5(host) AS c FROM txt JOIN log USING (id)
SELECT id, contains(s, u) AS a, starts_with(s, u) AS b, ends_with(s, u) AS c, replace(s, u, 'x') AS d, replace(s, 'a', u) AS e FROM txt
SELECT id, ts AT TIME ZONE 'Europe/Berlin' AS d, timezone('Asia/Tokyo', ts) AS e, day AT TIME ZONE 'America/New_York' AS f FROM log
SELECT id, z AT TIME ZONE 'Europe/Berlin' AS d, w AT TIME ZONE 'Europe/Berlin' AS e, z AT TIME ZONE 'UTC' AS f FROM zoned
SELECT id, try_strptime(s, '%Y-%m-%d') AS a, try_strptime(strftime(ts, '%d.%m.%Y %H:%M:%S'), '%d.%m.%Y %H:%M:%S') AS b FROM txt
SELECT id, strptime(strftime(ts, '%d/%m/%y %I:%M:%S %p'), '%d/%m/%y %I:%M:%S %p') AS a, strptime(strftime(ts, '%b %d %Y'), '%b %d %Y') AS b, strptime(strftime(ts, '%A %B %d %Y %H'), '%A %B %d %Y %H') AS c, strptime(ts::VARCHAR, '%Y-%m-%d %H:%M:%S') AS d FROM log WHERE ts = date_trunc('second', ts)
SELECT id, make_date(2026, kind, id % 28 + 1) AS a, make_timestamp(2026, 1 + id % 12, kind, id % 24, id % 60, id % 60 + 0.25) AS b FROM log
SELECT id FROM log WHERE strptime('2026-01-01', '%Y-%m-%d') < ts
SELECT id FROM log WHERE host = ANY (SELECT host FROM other WHERE kind = 1)
SELECT id FROM log WHERE kind <> ALL (SELECT kind FROM other WHERE kind = 1)
SELECT id FROM log WHERE kind <> ALL (SELECT kind FROM other)
SELECT id FROM log WHERE bytes > ALL (SELECT bytes FROM other WHERE bytes < 3)
SELECT id, bytes > ALL (SELECT bytes FROM other WHERE bytes < 3) AS a, bytes >= ANY (SELECT bytes FROM other WHERE bytes > 5) AS b, bytes < SOME (SELECT bytes FROM other) AS c FROM log
SELECT id, bytes > ALL (SELECT bytes FROM other WHERE false) AS a, bytes <> ANY (SELECT bytes FROM other WHERE bytes = 3) AS b, kind = ALL (SELECT kind FROM other WHERE kind = 2) AS c FROM log
SELECT id FROM log a WHERE a.bytes >= ALL (SELECT b.bytes FROM other b WHERE b.host = a.host AND b.bytes IS NOT NULL)
SELECT id FROM log WHERE bytes > ANY (SELECT max(bytes) - 3 FROM other GROUP BY host)
SELECT id FROM log WHERE kind = ANY ([1, 3])
SELECT id, (host, kind) IN (('a', 1), ('b', 2)) AS a, (host, kind) NOT IN (('a', 1), (NULL, 2)) AS b FROM log
SELECT id, row_number() OVER w AS r FROM log WINDOW w AS (PARTITION BY host ORDER BY id)
SELECT id, sum(bytes) OVER w AS r, count(*) OVER w AS n FROM log WINDOW w AS (PARTITION BY host ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW)
SELECT kind, string_agg(host, '' ORDER BY ts, host) FILTER (WHERE ok) || '!' AS s FROM log GROUP BY kind HAVING length(string_agg(host, '' ORDER BY ts, host)) > 2
SELECT string_agg(host, ',' ORDER BY ts, host) AS s FROM log WHERE false
SELECT string_agg(host, NULL) AS s FROM log
SELECT host, first(id ORDER BY ts, id) AS a, last(id ORDER BY ts, id) AS b, first(id ORDER BY ts DESC, id DESC) AS c, last(id ORDER BY ts DESC, id DESC) AS d FROM log GROUP BY host
SELECT host, count(DISTINCT (kind, ok)) AS a, count(DISTINCT (x, day, price)) FILTER (WHERE kind = 1) AS b FROM log GROUP BY host
SELECT DISTINCT ON (host) host, id FROM log ORDER BY host, id
SELECT DISTINCT ON (host, kind) host, kind, bytes FROM log ORDER BY host, kind, bytes DESC NULLS LAST, id
SELECT host, count(*) AS n FROM log GROUP BY host HAVING count(*) IN (SELECT id FROM other)
SELECT host, count(*) AS n FROM log GROUP BY host HAVING n NOT IN (SELECT id FROM other WHERE id > 5) AND max(bytes) > 3 ORDER BY host
SELECT kind AS k, max(bytes) AS m, count(*) FROM log GROUP BY ALL HAVING m + 1 IN (SELECT bytes FROM other) ORDER BY m DESC LIMIT 2
SELECT time_bucket(INTERVAL '1 minute', ts) AS w, string_agg(host, ',' ORDER BY ts, host) AS s FROM log GROUP BY w
SELECT max(id) AS m, string_agg(x::VARCHAR, ',' ORDER BY ts, x::VARCHAR) AS s FROM log
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(x, y)
VALUES (1, NULL), (2.5, 'b')
SELECT a.id, v.w FROM log a JOIN (VALUES ('a', 1), ('b', -2)) v(host, w) ON a.host = v.host
SELECT a.id, v.w FROM log a LEFT JOIN (VALUES ('a', 1), (NULL, -2)) v(host, w) ON a.host = v.host WHERE a.kind = 1
SELECT v.w, count(*) AS n FROM zoned a JOIN (VALUES ('a', DATE '2026-01-01'), ('b', NULL)) v(k, w) USING (k) GROUP BY v.w
SELECT id FROM log WHERE host IN (SELECT x FROM (VALUES ('a'), ('c')) v(x))
SELECT id FROM log WHERE kind IN (VALUES (1), (3))
WITH v(host, w) AS (VALUES ('a', TIMESTAMP '2026-01-01 00:01:00'), ('b', TIMESTAMP '2026-01-01 00:02:00')) SELECT id, ts > w AS later FROM log JOIN v USING (host)
SELECT * FROM (VALUES (1 + 1)) AS v(x)
SELECT max(x) AS m FROM (VALUES (1), (2)) AS v(x)
SELECT id FROM log UNION ALL SELECT x FROM (VALUES (1), (2)) AS v(x)
VALUES (1)
SELECT a.id FROM log a JOIN (VALUES ('a', 1)) v(host, w) ON a.host = v.host
SELECT id, ts AT TIME ZONE 'Europe/Berlin' AS d FROM log
SELECT id, timezone('UTC', ts) AS d FROM log
SELECT host, string_agg(host, ',') AS s FROM log GROUP BY host
SELECT host, count(DISTINCT (bytes, kind)) AS s FROM log GROUP BY host
SELECT id FROM log WHERE host = ANY (SELECT host FROM other)
SELECT id FROM log WHERE (host, kind) IN (('a', 1), ('b', 2))
SELECT host, count(*) AS n FROM log GROUP BY host HAVING n IN (SELECT id FROM other)
SELECT id, s LIKE u AS a FROM txt
SELECT id, md5(host) AS a FROM log
