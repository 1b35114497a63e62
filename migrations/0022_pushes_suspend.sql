-- A push of another person to a session's branch suspends the own credentials of the person who started it, as her message or her terminal
-- does: the agent runs what the branch brings. Nothing changes for existing rows.

ALTER TABLE suspended_credentials DROP CONSTRAINT suspended_credentials_act_known;
ALTER TABLE suspended_credentials ADD CONSTRAINT suspended_credentials_act_known
  CHECK (act IN ('message', 'answer', 'restart', 'terminal', 'runtime', 'port', 'push'));
