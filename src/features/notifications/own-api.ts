import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { remove } from "../../http/api/endpoints.ts";
import { BadRequest, Conflict, NotFound, Unavailable } from "../../http/api/errors.ts";
import { Instant, optionalText } from "../../http/api/schemas.ts";
import { DeliveryWire, Tested } from "./api.ts";
import { NOTICE_KINDS } from "./rules/events.ts";
import { CHAT_FORMATS, NOTICE_PLACES } from "./rules/own-notice.ts";
import { DISABLED_REASONS } from "./rules/outbound-tries.ts";

const nullable = Schema.NullOr;

const Tells = Schema.Array(Schema.Literals(NOTICE_KINDS)).annotate({
  description:
    "`asked`: an agent of yours asks, its work cannot be saved, or a person asks you for a review. `finished`: an agent of yours has " +
    "finished or failed. Yours are the sessions that you started or wrote to.",
});
const placeFields = {
  status: Schema.Literals(["off", "enabled", "disabled"]),
  tells: Tells,
  disabled_reason: nullable(Schema.Literals(DISABLED_REASONS)),
  failing_since: nullable(Instant),
  last_delivery: nullable(DeliveryWire),
};
const MailWire = Schema.Struct({
  ...placeFields,
  address: nullable(Schema.String).annotate({
    description: "The address that a provider verified at your last sign-in with one.",
  }),
  unavailable: nullable(Schema.Literals(["not_set_up", "no_address"])).annotate({
    description:
      "Why you can get no mail. `not_set_up`: the operator has named no mail server. `no_address`: no sign-in of yours has a verified address.",
  }),
}).annotate({ identifier: "OwnMail" });
const ChatWire = Schema.Struct({
  ...placeFields,
  format: nullable(Schema.Literals(CHAT_FORMATS)),
  url: nullable(Schema.String).annotate({
    description: "Masked, because any program that knows it can write there.",
  }),
}).annotate({ identifier: "OwnChat" });
const NoticesWire = Schema.Struct({ mail: MailWire, chat: ChatWire }).annotate({ identifier: "OwnNotices" });

const tells = Tells.check(Schema.isMinLength(1), Schema.isMaxLength(NOTICE_KINDS.length));
const params = { place: Schema.Literals(NOTICE_PLACES) };

/** A person's notices about her own sessions: by mail, and in her own chat (api.md 2). */
export class OwnNoticesGroup extends HttpApiGroup.make("ownNotices")
  .add(
    HttpApiEndpoint.get("get", "/", { success: NoticesWire }).annotate(
      RequiredPrivilege,
      "manage_own_notices",
    ),
    HttpApiEndpoint.put("setMail", "/mail", {
      payload: Schema.Struct({ tells }),
      success: NoticesWire,
      error: [BadRequest, Conflict],
    }).annotate(RequiredPrivilege, "manage_own_notices"),
    HttpApiEndpoint.put("setChat", "/chat", {
      payload: Schema.Struct({
        tells,
        format: Schema.optionalKey(Schema.Literals(CHAT_FORMATS)),
        url: Schema.optionalKey(optionalText(2048)),
      }),
      success: NoticesWire,
      error: BadRequest,
    }).annotate(RequiredPrivilege, "manage_own_notices"),
    remove("remove", "/:place", { params, privilege: "manage_own_notices" }),
    HttpApiEndpoint.post("test", "/:place/test", {
      params,
      success: Tested,
      error: [NotFound, Unavailable],
    }).annotate(RequiredPrivilege, "manage_own_notices"),
  )
  .middleware(Authorized)
  .prefix("/v1/me/notices") {}
