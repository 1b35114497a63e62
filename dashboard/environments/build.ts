/** A build of a project's environment: its words, and what people do with it. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { now } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";

export type Build = Answer<"GET /v1/projects/:pid/environment/builds/:bid">;

export const isOver = ({ status }: Build): boolean => ["ready", "failed", "cancelled"].includes(status);

/** Why a build was begun. Other causes are shown as they are. */
const CAUSES: Readonly<Record<string, string>> = {
  manifest: "its files changed",
  session: "a session needed it",
  asked: "a person asked for it",
  refresh: "the base image may be old",
};

export const causeWords = ({ cause }: Build): string => CAUSES[cause] ?? cause;

const CHANGE =
  "Change the Dockerfile, or the file that names it, and merge the change into the default branch.";
const SMALLER =
  "Make the build smaller, or ask your operator for a higher limit on time, memory or disk and then build again.";
const AGAIN = "This may be temporary. Build again.";

/** Advice about a failure, by its code. */
export const ADVICE: Readonly<Record<string, string>> = {
  syntax: CHANGE,
  step_failed: CHANGE,
  context_missing: CHANGE,
  image_unusable: CHANGE,
  egress_denied:
    "Correct the host's name, or ask your operator to add this host to `PLATFORM_EGRESS_ALLOW`. Then build again.",
  base_unavailable:
    "Correct the image's name, or ask your operator to allow the hosts of its registry in `PLATFORM_EGRESS_ALLOW`.",
  too_large: SMALLER,
  out_of_memory: SMALLER,
  timeout: SMALLER,
  builder_unavailable: "Ask your operator to fix the builder, then build again.",
  repository_unavailable: AGAIN,
  interrupted: AGAIN,
  secret_missing: "Set the secret's value, then build again.",
};

/** @param id of a build */
export const buildLink = (pid: string, id: string): string => projectLink(pid, `/environment/builds/${id}`);

/** How long it took, or takes so far, in ms. */
export const tookOf = ({ created_at: created, begun_at: begun, ended_at: ended }: Build): number =>
  (ended === null ? now() : Date.parse(ended)) - Date.parse(begun ?? created);

/** Begins a build, and leads to its page. */
export const begin = async (pid: string): Promise<void> => {
  const { id } = await request("POST /v1/projects/:pid/environment/builds", { params: { pid } });
  location.hash = buildLink(pid, id);
};

export const cancel = async ({ project_id: pid, id: bid }: Build): Promise<void> => {
  const sure = await ask({
    title: "Cancel this build?",
    text: "Sessions that wait for its image fail.",
    confirm: "Cancel the build",
    decline: "Keep building",
  });
  if (sure === null) return;
  const { status } = await request("POST /v1/projects/:pid/environment/builds/:bid/cancel", {
    params: { pid, bid },
  });
  notice(status === "cancelled" ? "The build was cancelled." : `The build had already ended: ${status}.`);
};
