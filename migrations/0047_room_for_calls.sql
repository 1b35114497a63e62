-- Room for one more call of a connector: the lock and the counts in one function, so that a call's row costs one statement. Before,
-- each call held the lock of its project over five statements, and many calls at once waited for each other.
--
-- Operators: nothing to do.
CREATE FUNCTION executor_room(
  wanted_project uuid,
  wanted_connector text,
  -- Null: the session's calls are not counted.
  wanted_session uuid,
  rows_since timestamptz,
  rows_max integer,
  open_since timestamptz,
  open_max integer
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  -- Calls of one project wait for each other here, so that two cannot take the last place.
  PERFORM pg_advisory_xact_lock(hashtextextended('executor ' || wanted_project::text, 0));
  -- A volatile function sees in each of its statements what was committed before that statement: here, the rows of earlier holders.
  -- A call that waits for a person counts once it is sent or settled.
  IF rows_max <= (
    SELECT count(*) FROM executor_calls
    WHERE project_id = wanted_project AND connector = wanted_connector AND outcome IS DISTINCT FROM 'pending'
      AND (at > rows_since OR begun_at > rows_since)
  ) THEN RETURN 'connector_busy';
  END IF;
  IF wanted_session IS NOT NULL AND open_max <= (
    SELECT count(*) FROM executor_calls
    WHERE session_id = wanted_session AND outcome IS NULL AND coalesce(begun_at, at) > open_since
  ) THEN RETURN 'session_busy';
  END IF;
  RETURN 'free';
END;
$$;
