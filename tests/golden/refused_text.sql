-- # Text that is no question

-- Comments are no part of it.
SELECT /* all of */ COUNT(*) AS n -- rows
FROM visits;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM 'visits.parquet';
--> refused Q6

SELECT COUNT(*) FROM '/etc/passwd';
--> refused Q6

SELECT COUNT(*) FROM "parquet_scan"('visits.parquet');
--> refused Q6

SELECT COUNT(*) FROM read_csv('/etc/passwd');
--> refused Q6

SELECT COUNT(*) FROM visits WHERE note = $$secret$$;
--> refused Q7

SELECT COUNT(*) FROM visits WHERE note = ?;
--> refused Q2

SELECT COUNT(*) FROM visits WHERE note = :name;
--> refused Q2

DELETE FROM visits;
--> refused Q5

INSERT INTO visits VALUES (1);
--> refused Q5

COPY visits TO '/tmp/out.csv';
--> refused Q5

ATTACH '/tmp/other.db';
--> refused Q5

PRAGMA database_list;
--> refused Q5

SET memory_limit = '1GB';
--> refused Q5

WITH gone AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM gone;
--> refused Q2

SELECT COUNT(*) INTO copy FROM visits;
--> refused Q11

SELECT COUNT(* FROM visits;
--> refused Q2

SELECT COUNT(*) FROM visits WHERE note = 'open;
--> refused Q2

SELECT /*+ PARALLEL(8) */ COUNT(*) FROM visits;
--> refused Q2

SELECT COUNT(*) FROM visits |> WHERE age > 3;
--> refused Q2
