-- Since when one pause follows the other without anything that worked in between; NULL: since `paused_at`.
ALTER TABLE pauses ADD COLUMN since TEXT;
