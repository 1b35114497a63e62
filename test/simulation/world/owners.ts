/** Who works for what lives: sessions and sandboxes (threats.md I7, I9). */
import { isLive, type SandboxStatus } from "../../../src/domain/session/session.ts";
import type { TableSet } from "../../twins/store/tables.ts";

export const isLiveSandbox = (status: SandboxStatus): boolean =>
  status === "provisioning" || status === "active";

/**
 * I7, I9: every live session has an owner with commands left. Every live sandbox is held by its session, or it is being
 * ended. A fault that removed commands is excused.
 */
export const ownerlessFaults = (tables: TableSet, forgotten: ReadonlySet<string>): readonly string[] => [
  ...[...tables.sessions.values()].flatMap(({ record: { id, status, sandboxId } }) => {
    if (!isLive(status) || forgotten.has(id)) return [];
    const left = tables.sessionOutbox.of(id).length + tables.sandboxOutbox.of(sandboxId ?? "").length;
    return left > 0 ? [] : [`I7 session ${id} is ${status} and has no commands left`];
  }),
  ...[...tables.sandboxes.values()].flatMap(({ record: { id, sessionId, status }, snapshot }) => {
    const session = tables.sessions.get(sessionId)?.record;
    const isHeld = session !== undefined && isLive(session.status) && session.sandboxId === id;
    const isLeft = isLiveSandbox(status) && snapshot.context.ending === null;
    if (isHeld || !isLeft || forgotten.has(sessionId)) return [];
    return tables.sessionOutbox.of(sessionId).length > 0 ? [] : [`I9 no session holds sandbox ${id}`];
  }),
];
