/** Changes of triggers. Each is a change request; who may merge has it merged at once. */
import type { Answer, Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { ask } from "../dialog.js";
import { notice } from "../notices.js";
import { projectLink } from "../parts.js";
import { lackedRole } from "../roles.js";

export type Wish = Omit<
  Request<"POST /v1/projects/:pid/triggers/proposals">["payload"],
  "merge" | "replaces"
>;
type ChangeRequest = Answer<"POST /v1/projects/:pid/triggers/proposals">;

export const mayMerge = (): boolean => lackedRole("merge") === null;

const linkTo = (pid: string, { number }: ChangeRequest): string =>
  projectLink(pid, `/change-requests/${number}`);

/** @param done what is true once it is merged: "is paused" */
const tell = (pid: string, change: ChangeRequest, { name, done }: { name: string; done: string }): void => {
  const link: [string, string] = [`Open #${change.number}`, linkTo(pid, change)];
  if (change.status === "merged") notice(`"${name}" ${done}.`, link);
  else notice(`Change request #${change.number} is open. Once it is merged, "${name}" ${done}.`, link);
};

type Action = Request<"POST /v1/projects/:pid/triggers/:slug/proposals">["payload"]["action"];

const DONE: Readonly<Record<Action, string>> = {
  pause: "is paused",
  resume: "is on",
  delete: "is deleted",
};

interface Target {
  readonly pid: string;
  readonly slug: string;
  readonly name: string;
}

/** Pauses, resumes or deletes a trigger. */
export const actOn = async ({ pid, slug, name }: Target, action: Action): Promise<void> => {
  const merge = mayMerge();
  if (action === "delete") {
    const sure = await ask({
      title: `Delete "${name}"?`,
      text: `Its lines in platform.toml are removed${merge ? "" : " by a change request"}. Its runs stay in the list.`,
      confirm: "Delete",
    });
    if (sure === null) return;
  }
  const change = await request("POST /v1/projects/:pid/triggers/:slug/proposals", {
    params: { pid, slug },
    payload: { action, merge },
  });
  tell(pid, change, { name, done: DONE[action] });
};

interface Save {
  readonly pid: string;
  readonly wish: Wish;
  /** The slug of the trigger that is changed. Null: the trigger is new. */
  readonly replaces: string | null;
  readonly merge: boolean;
}

/** Adds or changes a trigger. @returns the address where the reader goes on */
export const save = async ({ pid, wish, replaces, merge }: Save): Promise<string> => {
  const change = await request("POST /v1/projects/:pid/triggers/proposals", {
    params: { pid },
    payload: { ...wish, ...(replaces !== null && { replaces }), ...(merge && { merge }) },
  });
  const name = wish.name ?? wish.slug ?? "";
  if (merge) tell(pid, change, { name, done: replaces === null ? "is on" : "is changed" });
  return change.status === "merged" ? projectLink(pid, "/triggers") : linkTo(pid, change);
};
