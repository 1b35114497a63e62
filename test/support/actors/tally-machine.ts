/** The smallest machine with every feature that the host handles: a tally that counts each piece of work once. */
import type { PureMachine, Snapshot } from "../../../src/machines/step.ts";

export type TallySnapshot = Snapshot<"open" | "closed", { readonly total: number }>;
export type TallyEvent =
  /** Requests work of this worth. */
  | { readonly type: "work.requested"; readonly worth: number }
  /** The work is done, and counts. */
  | { readonly type: "work.finished"; readonly worth: number }
  | { readonly type: "work.failed"; readonly reason: string }
  | { readonly type: "close.requested" };
export type TallyCommand = { readonly type: "work"; readonly worth: number } | { readonly type: "tidy" };

const open: TallySnapshot = { state: "open", context: { total: 0 } };

export const tally: PureMachine<TallySnapshot, TallyEvent, TallyCommand, Record<string, never>> = {
  name: "tally",
  start: () => ({ snapshot: open, commands: [], accepted: true }),
  step: (snapshot, event) => {
    if (snapshot.state === "closed") return { snapshot, commands: [], accepted: false };
    const { total } = snapshot.context;
    switch (event.type) {
      case "work.requested":
        return { snapshot, commands: [{ type: "work", worth: event.worth }], accepted: true };
      case "work.finished":
        return {
          snapshot: { state: "open", context: { total: total + event.worth } },
          commands: [],
          accepted: true,
        };
      case "work.failed":
        return { snapshot: { state: "closed", context: { total } }, commands: [], accepted: true };
      case "close.requested":
        return {
          snapshot: { state: "closed", context: { total } },
          commands: [{ type: "tidy" }],
          accepted: true,
        };
    }
  },
};
