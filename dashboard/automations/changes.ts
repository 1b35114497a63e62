/** Changes of triggers. Each is a change request; who may merge has it merged at once. */
import type { Answer, Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { ask } from "../frame/dialog.ts";
import { notice, noticeAt } from "../frame/notices.ts";
import { projectLink } from "../elements/parts.ts";
import { lackedRole } from "../frame/roles.ts";

export type Wish = Omit<
  Request<"POST /v1/projects/:pid/triggers/proposals">["payload"],
  "merge" | "replaces"
>;
type ChangeRequest = Answer<"POST /v1/projects/:pid/triggers/proposals">;

export const mayMerge = (): boolean => lackedRole("merge") === null;

const linkTo = (pid: string, { number }: ChangeRequest): string =>
  projectLink(pid, `/change-requests/${number}`);

/** What a notice says. @param done what is true once it is merged: "is paused" */
const outcome = (
  pid: string,
  change: ChangeRequest,
  { name, done }: { readonly name: string; readonly done: string },
): readonly [text: string, link: [string, string]] => [
  change.status === "merged"
    ? `"${name}" ${done}.`
    : `Change request #${change.number} is open. Once it is merged, "${name}" ${done}.`,
  [`Open #${change.number}`, linkTo(pid, change)],
];

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
      title: `Delete “${name}”?`,
      text: `Its lines in platform.toml are removed${merge ? "" : " by a change request"}. Its runs stay in the list.`,
      confirm: "Delete",
      danger: true,
    });
    if (sure === null) return;
  }
  const change = await request("POST /v1/projects/:pid/triggers/:slug/proposals", {
    params: { pid, slug },
    payload: { action, merge },
  });
  notice(...outcome(pid, change, { name, done: DONE[action] }));
};

interface Save {
  readonly pid: string;
  readonly wish: Wish;
  /** The slug of the trigger that is changed. Null: the trigger is new. */
  readonly replaces: string | null;
  readonly merge: boolean;
}

/** Adds or changes a trigger. @returns what leads the reader on */
export const save = async ({ pid, wish, replaces, merge }: Save): Promise<() => void> => {
  const change = await request("POST /v1/projects/:pid/triggers/proposals", {
    params: { pid },
    payload: { ...wish, ...(replaces !== null && { replaces }), ...(merge && { merge }) },
  });
  const name = wish.name ?? wish.slug ?? "";
  const done = replaces === null ? "is on" : "is changed";
  const address = change.status === "merged" ? projectLink(pid, "/triggers") : linkTo(pid, change);
  return () => noticeAt(address, ...outcome(pid, change, { name, done }));
};
