import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { ATTACHMENTS_MAX } from "../../../domain/conversation/attachment.ts";
import { MESSAGE_TEXT_MAX, OfferedModel, RuntimeOffers } from "../../../domain/conversation/steering.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { ItemWire } from "./conversation.ts";
import { BadRequest, Conflict, NotFound, TooMany, Unavailable, Unprocessable } from "../errors.ts";
import { restoreSaved } from "./sessions.ts";
import { LacksWire, modelPrice, sessionParams, text, textOfBytes, Uuid } from "../schemas.ts";

const PricedModel = Schema.Struct({ ...OfferedModel.fields, price: modelPrice });

export const PostMessage = Schema.Struct({
  id: Uuid.annotate({
    description: "The message's id, made by the client. The same message may be posted again.",
  }),
  text: Schema.optionalKey(textOfBytes(MESSAGE_TEXT_MAX)).annotate({
    description: "May be left out if the message has attachments.",
  }),
  attachments: Schema.optionalKey(Schema.Array(Uuid).check(Schema.isMaxLength(ATTACHMENTS_MAX))).annotate({
    description:
      `Ids of files that were attached to this session, at most ${ATTACHMENTS_MAX} with 25 MiB together. ` +
      "The agent finds them in its sandbox.",
  }),
  delivery: Schema.optionalKey(Schema.Literals(["queue", "interrupt"])).annotate({
    description:
      "`queue` (the default): after the messages that wait. `interrupt`: ends the agent's turn, and goes before them.",
  }),
  model: Schema.optionalKey(text(200)).annotate({
    description: "`provider/model`. Without it, the model of the message before.",
  }),
  agent: Schema.optionalKey(text(64)).annotate({
    description: "Without it, the agent of the message before.",
  }),
  effort: Schema.optionalKey(
    text(32).annotate({
      description:
        "How hard the model thinks, in the runtime's words (`efforts` of the session's models). `default`: as the model does by itself. Without it, as for the message before.",
    }),
  ),
  restore_saved: restoreSaved,
});

const Posted = Schema.Struct({ message: ItemWire }).annotate({ identifier: "PostedMessage" });

/** How many questions one request may have, how many answers each, and how long one may be. */
const [QUESTIONS_MAX, ANSWERS_MAX, ANSWER_MAX] = [20, 50, 4_000];
/** How long the id of a mode may be. */
const MODE_MAX = 200;

const AnswerRequest = Schema.Union([
  Schema.Struct({
    choice: Schema.Literals(["once", "always", "reject"]),
    message: Schema.optionalKey(text(ANSWER_MAX)).annotate({ description: "Tells the agent why." }),
  }),
  Schema.Struct({
    answers: Schema.Array(Schema.Array(text(ANSWER_MAX)).check(Schema.isMaxLength(ANSWERS_MAX))).check(
      Schema.isMaxLength(QUESTIONS_MAX),
    ),
  }),
  Schema.Struct({
    approve: Schema.Literal(true),
    mode: Schema.optionalKey(text(MODE_MAX)).annotate({
      description: "For a plan: how the agent goes on, one of the plan's `modes`. Without it, the first one.",
    }),
  }),
]);

const itemParams = { ...sessionParams, id: Uuid };

/** What people say to the agent of a session (api.md 3). */
export class MessagesGroup extends HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.post("post", "/messages", {
      params: sessionParams,
      payload: PostMessage,
      success: [Posted, Posted.pipe(HttpApiSchema.status(201))],
      error: [BadRequest, NotFound, Conflict, Unprocessable, TooMany],
    }).annotate(RequiredPrivilege, "instruct_agent"),
    HttpApiEndpoint.delete("cancel", "/messages/:id", {
      params: itemParams,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "manage_messages"),
    HttpApiEndpoint.post("interrupt", "/interrupt", {
      params: sessionParams,
      success: Schema.Struct({ interrupted: Schema.Boolean }),
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "interrupt_agent"),
    HttpApiEndpoint.post("resume", "/queue/resume", {
      params: sessionParams,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "manage_messages"),
    HttpApiEndpoint.post("answer", "/requests/:id/answer", {
      params: itemParams,
      payload: AnswerRequest,
      success: Schema.Struct({ request: ItemWire }),
      error: [BadRequest, NotFound, Conflict, Unprocessable, TooMany, Unavailable],
    }).annotate(RequiredPrivilege, "settle_request"),
    HttpApiEndpoint.get("models", "/models", {
      params: sessionParams,
      success: Schema.Struct({
        ...RuntimeOffers.fields,
        models: Schema.Array(PricedModel),
        lacks: LacksWire,
      }),
      error: [NotFound, Conflict, Unavailable],
    }).annotate(RequiredPrivilege, "read_project"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/sessions/:sid") {}
