import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { page, show } from "../endpoints.ts";
import {
  AgentRequest,
  ContextUse,
  ContentPart,
  ItemError,
  ItemKind,
  PlanEntry,
  MessageStatus,
  ToolCall,
  TurnNow,
  Usage,
  WorkStatus,
} from "../../../domain/conversation/conversation.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { NotFound } from "../errors.ts";
import { Instant, pageQuery, sessionParams, text, Uuid } from "../schemas.ts";

const nullable = Schema.NullOr;

const AuthorWire = Schema.Struct({
  kind: Schema.Literals(["user", "trigger", "service", "agent", "sandbox"]),
  user_id: nullable(Uuid),
  name: Schema.String,
  trigger_slug: nullable(Schema.String),
  fire_id: nullable(Uuid),
}).annotate({ identifier: "Author" });

const answerFields = { by: nullable(AuthorWire), at: Instant };

const GivenAnswerWire = Schema.Union([
  Schema.Struct({
    ...answerFields,
    choice: Schema.Literals(["once", "always", "reject"]),
    message: nullable(Schema.String),
  }),
  Schema.Struct({ ...answerFields, answers: Schema.Array(Schema.Array(Schema.String)) }),
  Schema.Struct({ ...answerFields, approve: Schema.Literal(true), mode: Schema.String }),
  Schema.Struct({ ...answerFields, declined: Schema.Literals(["unattended", "expired", "message"]) }),
]).annotate({ identifier: "GivenAnswer" });

export const ItemWire = Schema.Struct({
  id: Uuid,
  seq: Schema.Finite.annotate({
    description: "The number of this version. A later version replaces the item.",
  }),
  rev: Schema.Finite,
  place: Schema.Finite.annotate({ description: "Items are shown in the order of this number." }),
  kind: ItemKind,
  role: nullable(Schema.Literals(["user", "agent"])),
  author: nullable(AuthorWire),
  turn_id: nullable(Uuid),
  parent_id: nullable(Uuid),
  sandbox_id: nullable(Uuid),
  status: Schema.Union([MessageStatus, WorkStatus]),
  content: Schema.Array(ContentPart),
  tool: nullable(ToolCall),
  plan: Schema.Array(PlanEntry),
  request: nullable(AgentRequest),
  answer: nullable(GivenAnswerWire).annotate({ description: "The answer to a request, and who gave it." }),
  model: nullable(Schema.String),
  agent: nullable(Schema.String).annotate({ description: "The agent that a person chose for a message." }),
  effort: Schema.optionalKey(Schema.String).annotate({
    description: "The effort that a person chose for a message. Absent: none.",
  }),
  usage: nullable(Usage),
  context: Schema.optionalKey(ContextUse).annotate({
    description:
      "How full the model's context is after the call whose usage this item has: `tokens` of `size`. `size` is null if the runtime does " +
      "not know it. Absent for calls of subagents, and if the runtime tells nothing.",
  }),
  compacts: Schema.optionalKey(Schema.Literal(true)).annotate({
    description: "The runtime replaced the conversation before this item with a summary.",
  }),
  error: nullable(ItemError),
  pruned: Schema.Boolean.annotate({
    description: "Whether content or output was removed to make room for newer items.",
  }),
  truncated: Schema.Boolean.annotate({
    description: "Whether this record is shortened. Only events have shortened records.",
  }),
  created_at: Instant,
  completed_at: nullable(Instant),
}).annotate({ identifier: "Item" });

export const TurnWire = Schema.Struct({
  state: TurnNow.fields.state,
  since: Instant,
  waiting_for: nullable(Uuid).annotate({
    description: "The id of the request that the agent waits for.",
  }),
}).annotate({ identifier: "Turn" });

export const UsageWire = Usage.annotate({ identifier: "Usage" });

export const ConversationWire = page({
  items: Schema.Array(ItemWire),
  state: TurnWire,
  queue: Schema.Array(ItemWire).annotate({
    description: "Messages that wait or are being sent, oldest first.",
  }),
  requests: Schema.Array(ItemWire).annotate({
    description: "Requests that wait for an answer, oldest first.",
  }),
  queue_held: Schema.Boolean.annotate({
    description: "Whether the queue waits for a person, because a turn was interrupted.",
  }),
  usage: UsageWire,
  seq: Schema.Finite.annotate({
    description: "The number of the last version. `conversation/events?after=` continues from here.",
  }),
}).annotate({ identifier: "Conversation" });

/** A session's conversation (api.md 3). Its events and its archive are raw routes (http/live/conversation.ts). */
export class ConversationGroup extends HttpApiGroup.make("conversation")
  .add(
    HttpApiEndpoint.get("get", "/conversation", {
      params: sessionParams,
      query: { before: pageQuery.cursor, limit: pageQuery.limit },
      success: ConversationWire,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("search", "/conversation/search", {
      params: sessionParams,
      query: {
        search: Schema.optionalKey(
          text(200).annotate({
            description:
              "Words whose beginnings are all in one message, or in one answer of a person to a request. Without any, nothing is found.",
          }),
        ),
      },
      success: Schema.Struct({
        found: Schema.Array(Schema.Struct({ item_id: Uuid, at: Instant, text: Schema.String })).annotate({
          description: "The newest 20, newest first, each with the sentence around the words.",
        }),
      }),
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    show("output", "/items/:id/output", {
      params: { ...sessionParams, id: Uuid },
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; charset=utf-8" })),
      privilege: "read_project",
    }),
    show("text", "/items/:id/text", {
      params: { ...sessionParams, id: Uuid },
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; charset=utf-8" })),
      privilege: "read_project",
    }),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/sessions/:sid") {}
