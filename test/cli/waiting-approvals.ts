/** Calls that wait for a person, as an agent would have asked for them. */
import { randomUUID } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { sealPart } from "../../src/features/approvals/waiting-calls.ts";
import { Approvals } from "../../src/features/approvals/ports/approvals.ts";
import { makeProject } from "../support/service/requests.ts";
import type { TestService } from "../support/service/service.ts";

/** @returns its id */
const askApproval = Effect.fnUntraced(function* (projectId: string) {
  const sql = yield* SqlClient.SqlClient;
  const [user] = yield* sql<{ readonly id: string }>`SELECT id FROM users LIMIT 1`;
  const id = randomUUID();
  const given = { page: "home" };
  const now = yield* Clock.currentTimeMillis;
  const call = {
    id,
    projectId,
    sessionId: randomUUID(),
    userId: user?.id ?? "",
    startedBy: "user",
    connector: "wiki",
    tool: "read",
    origin: "https://mcp.example.com",
    pin: "p",
    rule: "default",
    argumentsDigest: "0".repeat(64),
    argumentsBytes: 15,
    argumentsPreview: JSON.stringify(given),
    at: now,
  } as const;
  const sealedArguments = yield* sealPart(call, "arguments", given);
  yield* (yield* Approvals).ask(
    { call, sealedArguments, expiresAt: now + 3_600_000, attendedUntil: now },
    { atOnce: 1, perConnector: 999, windowMs: 1000, openMs: 1000, open: 9 },
  );
  return id;
});

/** @returns a function that makes one: its project, which is the same each time, and its id. */
export const waitingApprovals = (serviceNow: () => TestService) => {
  let project: Promise<string> | null = null;
  return async (): Promise<readonly [pid: string, approval: string]> => {
    const pid = await (project ??= makeProject(serviceNow()));
    return [pid, await serviceNow().inside(askApproval(pid))];
  };
};
