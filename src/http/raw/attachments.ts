/**
 * Files that people attach to a session's messages, even before the session exists (api.md 3, messages). Raw routes, because a body is any bytes.
 *
 *  F1 A file is only ever served as what it cannot do harm with: a known kind of image is shown, everything else is a
 *     download. No script in it runs.
 */
import { createHash, randomUUID } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import {
  ATTACHMENT_MAX,
  attachmentName,
  isImage,
  detectMediaType,
  type AttachmentHead,
} from "../../domain/conversation/attachment.ts";
import { parseUuid } from "../../domain/ids.ts";
import { takesMessages } from "../../services/projects/agents.ts";
import {
  Conversations,
  CONVERSATION_KEPT_MAX,
  type Attachment,
} from "../../store/ports/sessions/conversations.ts";
import { Uploads, UPLOADS_KEPT_MAX } from "../../store/ports/sessions/uploads.ts";
import type { RequestCaller } from "../api/access.ts";
import { badRequest, notFound, TooLarge, Unauthorized } from "../api/errors.ts";
import { awaitBody, BodyTime } from "../reading/body.ts";
import { ensureConversation, projectFor, sessionFor } from "../steps/answers.ts";
import { refuseSecrets } from "../steps/sessions/message-secrets.ts";
import { withErrors, calledWith, endOfAccess } from "./raw-route.ts";
import { projectInactive, takesNoMessages } from "../answers/refusals.ts";

/** How long a file may take to arrive. 10 MiB need a line of 0.7 Mbit/s. */
const ARRIVES_WITHIN = "2 minutes";

const conversationFull = () =>
  new TooLarge({
    error: `The conversation has no room for this file: a session keeps at most ${CONVERSATION_KEPT_MAX} bytes. Start a new session.`,
    code: "conversation_full",
    details: { limit: CONVERSATION_KEPT_MAX },
  });

const tokenEnded = () =>
  new Unauthorized({ error: "The token ended while the file arrived.", code: "unauthorized" });

const attachmentHead = ({ id, name, mediaType, sha256, content }: Attachment): AttachmentHead => ({
  id,
  name,
  media_type: mediaType,
  bytes: content.length,
  sha256,
});

/** The file in the body. */
const receiveFile = Effect.fnUntraced(function* (caller: RequestCaller, pid: string) {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const name = new URL(request.url, "http://service").searchParams.get("name");
  if (name === null || name === "") return yield* badRequest("name", "must be the file's name");
  const end = yield* endOfAccess(caller, pid, "member");
  yield* Effect.raceFirst(
    Effect.provideService(awaitBody(request, ATTACHMENT_MAX), BodyTime, ARRIVES_WITHIN),
    Effect.andThen(end, tokenEnded()),
  );
  const content = Buffer.from(yield* Effect.orDie(request.arrayBuffer));
  if (content.length === 0) return yield* badRequest("", "must have the file's content, but is empty");
  yield* refuseSecrets(pid, "The file", (value) => content.includes(value));
  const attachment: Attachment = {
    id: randomUUID(),
    name: attachmentName(name),
    mediaType: detectMediaType(request.headers["content-type"] ?? null, content),
    sha256: createHash("sha256").update(content).digest("hex"),
    content,
  };
  return { attachment, now: yield* Clock.currentTimeMillis };
});

/** `POST attachments?name=` of a session: keeps the body. 201 with its record. */
const attach = calledWith("manage_messages", (caller, { pid, sid }) =>
  Effect.gen(function* () {
    const session = yield* sessionFor(caller, { pid, sid: sid ?? "" });
    if (!(yield* takesMessages(session.projectId, session.agentName))) return yield* takesNoMessages();
    const { attachment, now } = yield* receiveFile(caller, pid);
    yield* ensureConversation(session.id);
    const outcome = yield* (yield* Conversations).keepAttachment(session.id, { ...attachment, now });
    if (outcome === null) return yield* notFound("session");
    if (outcome === "full") return yield* conversationFull();
    return HttpServerResponse.jsonUnsafe(attachmentHead(attachment), { status: 201 });
  }),
);

const projectFull = () =>
  new TooLarge({
    error: `Files for new sessions may have at most ${UPLOADS_KEPT_MAX} bytes in a project. Wait until those sessions have started.`,
    code: "uploads_full",
    details: { limit: UPLOADS_KEPT_MAX },
  });

/** `POST attachments?name=` of a project: keeps the body for a session that does not exist yet. */
const upload = calledWith("manage_messages", (caller, { pid }) =>
  Effect.gen(function* () {
    const project = yield* projectFor(caller, pid);
    if (project.status !== "active") return yield* projectInactive(project);
    const { attachment, now } = yield* receiveFile(caller, pid);
    const owner = { projectId: pid, createdBy: caller.user.id };
    if ((yield* (yield* Uploads).keep({ ...attachment, ...owner, now })) === "full")
      return yield* projectFull();
    return HttpServerResponse.jsonUnsafe(attachmentHead(attachment), { status: 201 });
  }),
);

/** Every character that a header's plain form cannot have is `_` there. */
const disposition = (kind: "inline" | "attachment", name: string): string => {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const exact = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename="${plain}"; filename*=UTF-8''${exact}`;
};

/** `GET attachments/{id}`: the file. */
const read = calledWith("read_project", (caller, { pid, sid }) =>
  Effect.gen(function* () {
    const session = yield* sessionFor(caller, { pid, sid: sid ?? "" });
    const { params } = yield* HttpRouter.RouteContext;
    const id = parseUuid(params["id"] ?? "");
    if (id === null) return yield* badRequest("id", "must be a lower-case UUID");
    const attachment = yield* (yield* Conversations).attachment(session.id, id);
    if (attachment === null) return yield* notFound("attachment");
    const isInline = isImage(attachment.mediaType);
    return HttpServerResponse.uint8Array(attachment.content, {
      contentType: isInline ? attachment.mediaType : "application/octet-stream",
      headers: {
        "content-disposition": disposition(isInline ? "inline" : "attachment", attachment.name),
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        // An attachment never changes.
        "cache-control": "private, max-age=86400, immutable",
        etag: `"${attachment.sha256}"`,
      },
    });
  }),
);

const ATTACHMENTS = "/v1/projects/:pid/sessions/:sid/attachments";

export const attachmentRoutes = HttpRouter.addAll([
  HttpRouter.route("POST", "/v1/projects/:pid/attachments", withErrors(upload)),
  HttpRouter.route("POST", ATTACHMENTS, withErrors(attach)),
  HttpRouter.route("GET", `${ATTACHMENTS}/:id`, withErrors(read)),
]);
