/** Calls of an agent that wait for a person, as a test asks for them. */
import { randomUUID } from "node:crypto";
import type { NewApproval } from "../../../src/features/approvals/ports/approvals.ts";
import type { NewCall } from "../../../src/store/ports/connectors/executor-calls.ts";
import { NOON, type World } from "./world.ts";

export const DAY = 86_400_000;

export const asked = (world: World, fields: Partial<NewCall> = {}): NewApproval => {
  const call: NewCall = {
    id: randomUUID(),
    projectId: world.projectId,
    sessionId: "00000000-0000-7000-8000-0000000000aa",
    userId: world.userId,
    startedBy: "user",
    connector: "docs",
    tool: "delete",
    origin: "https://mcp.example.com",
    pin: "p",
    rule: "delete",
    argumentsDigest: "0".repeat(64),
    argumentsBytes: 2,
    argumentsPreview: "{}",
    at: NOON,
    ...fields,
  };
  return {
    call,
    sealedArguments: Uint8Array.from([1, 2]),
    expiresAt: call.at + DAY,
    attendedUntil: call.at + 30_000,
  };
};
