-- duckdb
SELECT SKEWNESS(minutes), KURTOSIS(minutes) FROM checkins;
SELECT activity, SKEWNESS(minutes) AS lean, KURTOSIS_POP(minutes) FROM checkins GROUP BY activity;
SELECT SKEWNESS(minutes) FILTER (WHERE guest) FROM checkins;
SELECT SKEWNESS(n) FROM (SELECT member_id, COUNT(*) AS n FROM checkins GROUP BY member_id);
SELECT activity, GEOMEAN(minutes) AS g FROM checkins GROUP BY activity;
SELECT DATE_DIFF('day', MAKE_DATE(YEAR(joined), 1, 1), joined) < 90 AS early, COUNT(*) FROM members GROUP BY early;
SELECT plan, REGR_R2(weight, YEAR(joined)) FROM members GROUP BY plan;
SELECT REGR_COUNT(minutes, calories) FROM checkins;
SELECT COUNT(*) FROM checkins c ASOF JOIN payments p ON c.member_id = p.member_id AND c.entered >= p.paid_on;
SELECT COUNT(*) FROM members m ASOF JOIN payments p ON m.member_id = p.member_id AND m.joined <= p.paid_on;
SELECT f, COUNT(*) FROM (SELECT member_id, FIRST(activity ORDER BY entered) AS f FROM checkins WHERE NOT guest GROUP BY member_id) GROUP BY f;
SELECT f, COUNT(*) FROM (SELECT member_id, LAST(activity ORDER BY entered) AS f, ARG_MIN(club, entered) AS g FROM checkins GROUP BY member_id) WHERE g = 'Park' GROUP BY f;
SELECT c.club, f, COUNT(*) FROM (SELECT member_id, club, MAX_BY(activity, entered) AS f FROM checkins GROUP BY member_id, club) c GROUP BY c.club, f;
SELECT AVG(mx) FROM (SELECT member_id, MAX_BY(minutes, entered) AS mx FROM checkins GROUP BY member_id);
SELECT AVG(mx) FROM (SELECT member_id, ARG_MIN(calories, entered) AS mx FROM checkins GROUP BY member_id);
SELECT guests, COUNT(*) FROM (SELECT member_id, COUNT_IF(guest) AS guests FROM checkins GROUP BY member_id) GROUP BY guests;
SELECT h, COUNT(c.checkin_id) FROM range(6, 12) AS t(h) LEFT JOIN checkins c ON EXTRACT(HOUR FROM c.entered) = t.h GROUP BY h;
SELECT cl.club, ANY_VALUE(cl.city) AS city, COUNT(*) FROM checkins c JOIN clubs cl USING (club) GROUP BY cl.club;
SELECT TRUNC(weight) AS kg, COUNT(*) FROM members WHERE weight < 60 GROUP BY kg;
SELECT activity || '/' || MONTH(entered) AS k, COUNT(*) FROM checkins GROUP BY k;
--> duckdb: SELECT activity || '/' || MONTH(entered)::TEXT AS k, COUNT(*) FROM checkins GROUP BY k
SELECT cl.city, AVG(c.minutes) FROM checkins c SEMI JOIN payments p ON p.member_id = c.member_id AND p.status = 'failed' JOIN clubs cl ON cl.club = c.club GROUP BY cl.city;
SELECT COUNT(*) FROM members ANTI JOIN checkins USING (member_id);
-- postgres
SELECT t.h, COUNT(c.checkin_id) FROM generate_series(6, 12) AS t(h) LEFT JOIN checkins c ON EXTRACT(HOUR FROM c.entered) = t.h GROUP BY t.h;
--> duckdb: SELECT HOUR(entered), COUNT(*) FROM checkins WHERE HOUR(entered) BETWEEN 6 AND 12 GROUP BY 1
SELECT d.m, COUNT(p.amount) FROM generate_series(DATE '2025-01-01', DATE '2025-12-01', INTERVAL '1 month') AS d(m) LEFT JOIN payments p ON DATE_TRUNC('month', p.paid_on) = d.m GROUP BY d.m;
--> duckdb: SELECT DATE_TRUNC('month', paid_on), COUNT(*) FROM payments GROUP BY 1
SELECT COUNT(*) FROM members m, LATERAL (SELECT COUNT(*) AS n FROM checkins c WHERE c.member_id = m.member_id) x WHERE x.n > 3;
SELECT plan, AVG(x.n) FROM members m CROSS JOIN LATERAL (SELECT SUM(minutes) AS n, COUNT(*) AS k FROM checkins c WHERE c.member_id = m.member_id) x WHERE x.k > 2 GROUP BY plan;
SELECT COUNT(*) FROM members m LEFT JOIN LATERAL (SELECT MAX(entered) AS last FROM checkins t WHERE t.member_id = m.member_id) x ON TRUE WHERE x.last > '2025-06-25';
SELECT cl.club, cl.city, cl.area, COUNT(*) FROM checkins c JOIN clubs cl ON c.club = cl.club GROUP BY cl.club;
--> duckdb: SELECT cl.club, cl.city, cl.area, COUNT(*) FROM checkins c JOIN clubs cl ON c.club = cl.club GROUP BY ALL
SELECT COUNT(*) FROM members WHERE SPLIT_PART(email, '@', 2) = 'mail.example';
-- bigquery
SELECT day, COUNT(p.amount) FROM UNNEST(GENERATE_DATE_ARRAY('2025-06-01', '2025-06-30')) AS day LEFT JOIN payments p ON p.paid_on = day GROUP BY day;
--> duckdb: SELECT paid_on, COUNT(*) FROM payments WHERE paid_on BETWEEN '2025-06-01' AND '2025-06-30' GROUP BY 1
SELECT h, COUNT(c.checkin_id) FROM UNNEST(GENERATE_ARRAY(0, 23)) AS h LEFT JOIN checkins c ON EXTRACT(HOUR FROM c.entered) = h GROUP BY h;
--> duckdb: SELECT HOUR(entered), COUNT(*) FROM checkins GROUP BY 1
SELECT CONCAT(activity, '-', minutes) AS k, COUNT(*) FROM checkins WHERE minutes < 8 GROUP BY k;
SELECT COUNT(*) FROM (SELECT member_id, LOGICAL_OR(guest) AS g FROM checkins GROUP BY member_id) WHERE g;
--> duckdb: SELECT COUNT(*) FROM (SELECT member_id, BOOL_OR(guest) AS g FROM checkins GROUP BY member_id) WHERE g
-- snowflake
SELECT TRUNC(paid_on, 'MM') AS m, COUNT(*) FROM payments GROUP BY m;
--> duckdb: SELECT DATE_TRUNC('month', paid_on) AS m, COUNT(*) FROM payments GROUP BY m
SELECT COUNT(*) FROM (SELECT member_id, BOOLOR_AGG(guest) AS g FROM checkins GROUP BY member_id) WHERE g;
--> duckdb: SELECT COUNT(*) FROM (SELECT member_id, BOOL_OR(guest) AS g FROM checkins GROUP BY member_id) WHERE g
SELECT SKEW(weight) FROM members;
--> duckdb: SELECT SKEWNESS(weight) FROM members
-- mysql
SELECT DATE_FORMAT(entered, '%Y-%m') AS m, COUNT(*) FROM checkins GROUP BY m;
--> duckdb: SELECT STRFTIME(entered, '%Y-%m') AS m, COUNT(*) FROM checkins GROUP BY m
-- refused
SELECT BOOL_OR(guest) FROM checkins;
SELECT MIN_BY(activity, entered) FROM checkins;
SELECT COUNT(*) FROM checkins c ASOF LEFT JOIN payments p ON c.member_id = p.member_id AND c.entered >= p.paid_on;
SELECT COUNT(*) FROM members m LEFT JOIN LATERAL (SELECT entered FROM checkins t WHERE t.member_id = m.member_id LIMIT 1) x ON TRUE;
