/** Planted bugs (plants.ts) in the storage of conversations. */
import type { Plant } from "../plants.ts";

export const PLANTS_OF_CONVERSATIONS: readonly Plant[] = [
  {
    name: "ended-sandboxes-write",
    file: "test/twins/store/sessions/conversations.ts",
    find: "session?.sandboxId === report.sandboxId && tables.isSandboxLive(report.sandboxId);",
    put: "true;",
    seed: 105,
  },
  {
    name: "items-left-open",
    file: "src/actors/sandbox.ts",
    find: "      yield* conversations.close(sessionId, { sandboxId: id, as, now });\n",
    put: "",
    seed: 1,
  },
  {
    name: "reports-passed-over",
    file: "src/actors/conversations/follower.ts",
    find: "position = { after: portion.rev,",
    put: "position = { after: portion.rev + 1,",
    seed: 5,
  },
  {
    name: "items-stand-as-they-arrive",
    file: "src/store/conversations/notes.ts",
    find: "  if (late !== null) draft.arrange(sandboxId, late);\n",
    put: "",
    more: [
      {
        file: "src/store/conversations/reports.ts",
        find: "(a.order ?? a.rev) - (b.order ?? b.rev)",
        put: "a.rev - b.rev",
      },
    ],
    seed: 1_000_002,
  },
  {
    name: "closed-items-reopened",
    file: "src/store/conversations/notes.ts",
    find: "status: isEnded ? row.status : item.status,",
    put: "status: item.status,",
    seed: 5,
  },
];
