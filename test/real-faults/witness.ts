/**
 * A witness inside the database: triggers that look at every commit of the service and write down what must not be
 * (threats.md I1, I6, I11, I12, I13, I14). A look from outside comes now and then; these see each state there ever was.
 */
export const WITNESS = `
CREATE SCHEMA witness;
CREATE TABLE witness.sightings (id bigint GENERATED ALWAYS AS IDENTITY, what text NOT NULL);

-- I6, I11: the moves that api.md 3 knows.
CREATE FUNCTION witness.move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  former text := CASE TG_OP WHEN 'INSERT' THEN 'none' ELSE OLD.status::text END;
  allowed text[] := CASE TG_TABLE_NAME
    WHEN 'project_sessions' THEN ARRAY['none provisioning', 'provisioning running', 'provisioning failed',
      'provisioning stopped', 'running stopped', 'running failed', 'stopped provisioning', 'failed provisioning']
    ELSE ARRAY['none provisioning', 'provisioning active', 'provisioning error', 'provisioning stopped',
      'provisioning archived', 'active error', 'active stopped', 'active archived'] END;
BEGIN
  IF former <> NEW.status::text AND NOT former || ' ' || NEW.status = ANY (allowed) THEN
    INSERT INTO witness.sightings (what) VALUES (
      format('%s %s of %s went from %s to %s', CASE TG_TABLE_NAME WHEN 'project_sessions' THEN 'I6' ELSE 'I11' END,
        NEW.id, TG_TABLE_NAME, former, NEW.status));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER witness_move AFTER INSERT OR UPDATE OF status ON project_sessions
  FOR EACH ROW EXECUTE FUNCTION witness.move();
CREATE TRIGGER witness_move AFTER INSERT OR UPDATE OF status ON session_sandboxes
  FOR EACH ROW EXECUTE FUNCTION witness.move();

-- I1, I12: at each commit the counter is the count, and within the cap.
CREATE FUNCTION witness.slots() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  account record;
BEGIN
  -- One statement, and so one instant: between two of them another session may end, and its slot with it.
  SELECT id, active_sessions, session_cap, (SELECT count(*) FROM project_sessions
      WHERE account_id = accounts.id AND status IN ('provisioning', 'running')) AS live
    INTO account FROM accounts WHERE id = CASE TG_TABLE_NAME
      WHEN 'accounts' THEN (to_jsonb(NEW) ->> 'id')::uuid ELSE (to_jsonb(NEW) ->> 'account_id')::uuid END;
  IF account.live <> account.active_sessions OR account.live > account.session_cap THEN
    INSERT INTO witness.sightings (what) VALUES (
      format('I1 at a commit account %s counted %s, had %s live sessions and %s slots', account.id,
        account.active_sessions, account.live, account.session_cap));
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER witness_slots AFTER INSERT OR UPDATE ON accounts
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION witness.slots();
CREATE CONSTRAINT TRIGGER witness_slots AFTER INSERT OR UPDATE OF status ON project_sessions
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION witness.slots();

-- I13: a fire that leaves the queue to start leaves no earlier one of its project behind.
CREATE FUNCTION witness.queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM fires WHERE id = OLD.fire_id AND status = 'fired')
    AND EXISTS (SELECT FROM fire_queue WHERE project_id = OLD.project_id AND arrival < OLD.arrival) THEN
    INSERT INTO witness.sightings (what) VALUES (format('I13 fire %s overtook one of its project', OLD.fire_id));
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER witness_queue AFTER DELETE ON fire_queue
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION witness.queue();

-- I14: last_fired_at never moves back.
CREATE FUNCTION witness.fired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.last_fired_at < OLD.last_fired_at THEN
    INSERT INTO witness.sightings (what) VALUES (format('I14 last_fired_at of %s/%s moved back', OLD.project_id, OLD.slug));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER witness_fired AFTER UPDATE ON project_trigger_runtime
  FOR EACH ROW EXECUTE FUNCTION witness.fired();
`;
