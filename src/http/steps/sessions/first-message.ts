/** The first message of a session that is about to begin, with files that a person has uploaded for it, or with an effort or a mode. */
import * as Effect from "effect/Effect";
import type { Agent } from "../../../domain/agents/agents.ts";
import { ATTACHMENTS_MAX } from "../../../domain/conversation/attachment.ts";
import { MESSAGE_TEXT_MAX } from "../../../domain/conversation/steering.ts";
import { takesMessages } from "../../../services/projects/agents.ts";
import type { Project } from "../../../store/ports/projects/projects.ts";
import type { RequestWish, SessionWish } from "../../../store/ports/triggers/admissions.ts";
import { Uploads } from "../../../store/ports/sessions/uploads.ts";
import { takesNoMessages } from "../../answers/refusals.ts";
import { Caller } from "../../api/access.ts";
import { badRequest } from "../../api/errors.ts";
import { requirePrivilege } from "../../callers/authorize.ts";
import { requireFewBytes, requireKnown } from "./attached-files.ts";
import { refuseSecrets } from "./message-secrets.ts";
import { checkEffort, checkMode } from "./model-names.ts";

/** @throws 400 for an upload that the caller does not have */
export const firstMessage = Effect.fnUntraced(function* (
  { id: projectId }: Project,
  {
    text,
    attachments,
    agent,
    effort,
    mode,
  }: {
    readonly text: string;
    readonly attachments: readonly string[];
    readonly agent: Agent;
    readonly effort: string | undefined;
    readonly mode: string | undefined;
  },
) {
  const caller = yield* Caller;
  yield* requirePrivilege(caller, "manage_messages");
  if (!(yield* takesMessages(projectId, agent.name))) return yield* takesNoMessages();
  if (effort !== undefined) yield* checkEffort(agent, effort);
  if (mode !== undefined) yield* checkMode(agent, mode);
  if (attachments.length > ATTACHMENTS_MAX || new Set(attachments).size < attachments.length)
    return yield* badRequest("attachments", `must name at most ${ATTACHMENTS_MAX}, each once`);
  if (Buffer.byteLength(text) > MESSAGE_TEXT_MAX)
    return yield* badRequest(
      "initial_prompt",
      `must have at most ${MESSAGE_TEXT_MAX} bytes with files, an effort or a mode`,
    );
  if (text === "" && attachments.length === 0)
    return yield* badRequest(
      effort === undefined ? "mode" : "effort",
      "needs a prompt: it belongs to the first message",
    );
  yield* refuseSecrets(projectId, "The text", (value) => text.includes(value));
  const heads = yield* (yield* Uploads).heads({ projectId, createdBy: caller.user.id }, attachments);
  yield* requireKnown(
    attachments,
    heads,
    "must be a file that you uploaded to this project; one that no session has is removed after 6 hours",
  );
  yield* requireFewBytes(heads);
  return {
    text,
    attachments,
    author: caller.user.name,
    ...(effort !== undefined && { effort }),
    ...(mode !== undefined && { mode }),
  };
});

/** How much longer than a request may wait its files are kept, ms: until its session has them. */
const HAND_OVER_MS = 60 * 60 * 1000;

/** The files stay for as long as the request may wait. */
export const claimUploads = Effect.fnUntraced(function* ({ session, fire, now }: SessionWish | RequestWish) {
  const { firstMessage: first } = session;
  if (first === undefined || first === null) return;
  const until = now + (fire?.queueTtlMs ?? 0) + HAND_OVER_MS;
  yield* (yield* Uploads).claim(first.attachments, { fireId: fire?.id ?? null, until });
});
