/** What people say of a change request (api.md 6): comments, also on lines, approvals, wishes for changes. */
import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { page } from "../../http/api/endpoints.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadRequest, Conflict, Forbidden, NotFound } from "../../http/api/errors.ts";
import { Instant, numberParams, optionalText, pageQuery, text, Uuid } from "../../http/api/schemas.ts";
import { REMARK_KINDS } from "./rules/verdicts.ts";

const nullable = Schema.NullOr;
const BODY_MAX = 16 * 1024;
const LINES_MAX = 10_000_000;
export const Person = Schema.Struct({ id: Uuid, name: Schema.String });
const Line = Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: LINES_MAX }));

/** Lines of a file on one side of the comparison. */
const Place = Schema.Struct({
  file: text(4096),
  side: Schema.Literals(["base", "head"]),
  first_line: Line,
  last_line: Line,
});

export const RemarkWire = Schema.Struct({
  id: Uuid,
  kind: Schema.Literals(REMARK_KINDS).annotate({
    description:
      "`approval` and `changes_requested` are verdicts: a person's newest one is hers. An approval counts for `commit` only.",
  }),
  body: Schema.String.annotate({ description: "Markdown." }),
  commit: nullable(Schema.String).annotate({
    description: "The head commit that its author saw. Null: the branch did not exist.",
  }),
  outdated: Schema.Boolean.annotate({ description: "Whether the head branch has another commit now." }),
  place: nullable(Place).annotate({ description: "Lines, from 1. Null: the whole request." }),
  reply_to: nullable(Uuid).annotate({ description: "The remark that it answers." }),
  created_by: Person,
  created_at: Instant,
  edited_at: nullable(Instant),
  resolved_by: nullable(Uuid),
  resolved_at: nullable(Instant),
}).annotate({ identifier: "Remark" });

export const VerdictWire = Schema.Struct({
  kind: RemarkWire.fields.kind,
  by: Person,
  at: Instant,
  commit: nullable(Schema.String),
  counts: Schema.Boolean.annotate({
    description:
      "Whether it is an approval of the present head, by another person than the one who opened the request, who may still approve it.",
  }),
  why_not: nullable(Schema.String).annotate({
    description:
      "Why an approval of an open request does not count, as a part of a sentence. Null: it counts, or it is none.",
  }),
});

export const ReviewerWire = Schema.Struct({
  ...Person.fields,
  asked_by: Uuid,
  asked_at: Instant,
  answer: nullable(Schema.Literals(REMARK_KINDS)).annotate({
    description:
      "Her newest verdict since she was asked, else `comment` if she commented. Null: she has not answered.",
  }),
}).annotate({ identifier: "Reviewer" });

export const AddRemark = Schema.Struct({
  kind: Schema.optionalKey(RemarkWire.fields.kind),
  body: Schema.optionalKey(optionalText(BODY_MAX)),
  /** The head commit that its author sees. A verdict of another one is refused. */
  commit: Schema.optionalKey(text(64)),
  place: Schema.optionalKey(Place),
  reply_to: Schema.optionalKey(Uuid),
});

/** Each of the two may be absent. */
export const EditRemark = Schema.Struct({
  body: Schema.optionalKey(text(BODY_MAX)),
  resolved: Schema.optionalKey(Schema.Boolean),
});

const remarkParams = { ...numberParams, id: Uuid };

export class ReviewsGroup extends HttpApiGroup.make("reviews")
  .add(
    HttpApiEndpoint.get("list", "/", {
      params: numberParams,
      query: pageQuery,
      success: page({ remarks: Schema.Array(RemarkWire) }),
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("add", "/", {
      params: numberParams,
      payload: AddRemark,
      success: RemarkWire.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "review_change_request"),
    HttpApiEndpoint.patch("edit", "/:id", {
      params: remarkParams,
      payload: EditRemark,
      success: RemarkWire,
      error: [BadRequest, Forbidden, NotFound],
    }).annotate(RequiredPrivilege, "review_change_request"),
    HttpApiEndpoint.delete("remove", "/:id", {
      params: remarkParams,
      success: HttpApiSchema.NoContent,
      error: [Forbidden, NotFound],
    }).annotate(RequiredPrivilege, "review_change_request"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/change-requests/:number/remarks") {}
