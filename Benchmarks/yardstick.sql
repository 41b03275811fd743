-- What the store is measured against: the versioned table that a good engineer writes by hand. Every statement
-- that the yardstick runs is here; yardstick.c binds and steps them, in the order that its functions show.

-- name: connection
PRAGMA page_size = 4096;
PRAGMA journal_mode = WAL;
PRAGMA cache_size = -65536;
PRAGMA mmap_size = 67108864;

-- name: schema
CREATE TABLE IF NOT EXISTS versions (
    id INTEGER PRIMARY KEY, uuid TEXT, parent1 INTEGER, parent2 INTEGER, generation INTEGER, time REAL);
CREATE TABLE IF NOT EXISTS kv (
    key TEXT, version INTEGER, data BLOB, PRIMARY KEY (key, version)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kv_version ON kv (version);

-- One transaction per version. Values of one version are inserted in the order of their keys.

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: insert_version
INSERT INTO versions (uuid, parent1, parent2, generation, time) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: insert_value
INSERT INTO kv (key, version, data) VALUES (?1, ?2, ?3)

-- name: generation
SELECT generation FROM versions WHERE id = ?1

-- On a linear history the state at a version is, for each key, the greatest version not above it.

-- name: value_at
SELECT data FROM kv WHERE key = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1

-- name: present_at
SELECT 1 FROM kv WHERE key = ?1 AND version <= ?2 LIMIT 1

-- All rows in the order of keys, then versions: the caller takes the last of each key that is not above its version.
-- name: scan
SELECT key, version, data FROM kv WHERE key >= ?1 ORDER BY key, version

-- name: changed_between
SELECT DISTINCT key FROM kv WHERE version > ?1 AND version <= ?2 ORDER BY key

-- name: changed_in
SELECT key FROM kv WHERE version = ?1

-- The ancestors of two versions from the newest generation down, as a queue: the first that comes from both
-- sides is their merge base, and no row behind it is computed when the caller stops there.
-- name: walk
WITH RECURSIVE walk (id, side, generation, parent1, parent2) AS (
    SELECT id, 1, generation, parent1, parent2 FROM versions WHERE id = ?1
    UNION SELECT id, 2, generation, parent1, parent2 FROM versions WHERE id = ?2
    UNION SELECT versions.id, walk.side, versions.generation, versions.parent1, versions.parent2
          FROM walk JOIN versions ON versions.id IN (walk.parent1, walk.parent2)
    ORDER BY 3 DESC, 1 DESC)
SELECT id, side FROM walk

-- A merge takes over the second side's row into the merge's version, so that the state at it needs its first
-- parent's chain only.
-- name: take_over
INSERT INTO kv (key, version, data) SELECT key, ?3, data FROM kv WHERE key = ?1 AND version = ?2

-- name: end
