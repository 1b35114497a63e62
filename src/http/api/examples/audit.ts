/** Examples of the audit record. */
import type { OperationExample } from "./example.ts";
import { BEGAN, PROJECT, USER } from "./records.ts";

const event = {
  id: "019a7c42-0c4d-7e3b-8a6f-1b2c3d4e5f31",
  at: BEGAN,
  project_id: PROJECT,
  actor: { kind: "person", id: USER, name: "Mia", token_id: "019a7c42-0c4d-7e3b-8a6f-1b2c3d4e5f32" },
  action: "secret.set",
  target: "OPENAI_API_KEY",
  outcome: "done",
  address: "192.0.2.17",
  user_agent: "curl/8.5.0",
  request_id: "8d3a2a5e-5f0b-4a43-9a55-0d3f1c1a7e10",
  changes: { new: true },
};

const LINES =
  "With the header Accept: application/x-ndjson, the answer is all of them, one JSON object a line.";

export const AUDIT_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "audit.list": {
    summary: `List who did what in the account, newest first. ${LINES}`,
    response: { events: [event], next_cursor: null },
  },
  "audit.listOfProject": {
    summary: `List who did what in a project, newest first. ${LINES}`,
    response: { events: [event], next_cursor: null },
  },
};
