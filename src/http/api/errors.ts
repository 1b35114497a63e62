/**
 * The common shape of every error (api.md 1): `{error, code, details?}`. `error` is a sentence that a person can act
 * on, `code` is stable. Each status has its own class, since the status distinguishes errors on the wire.
 */
import * as Schema from "effect/Schema";

const fields = {
  error: Schema.String,
  code: Schema.String,
  details: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
};

export class BadRequest extends Schema.Error<BadRequest>("BadRequest")(fields, { httpApiStatus: 400 }) {}
export class Unauthorized extends Schema.Error<Unauthorized>("Unauthorized")(fields, {
  httpApiStatus: 401,
}) {}
export class Forbidden extends Schema.Error<Forbidden>("Forbidden")(fields, { httpApiStatus: 403 }) {}
export class NotFound extends Schema.Error<NotFound>("NotFound")(fields, { httpApiStatus: 404 }) {}
export class RequestTimeout extends Schema.Error<RequestTimeout>("RequestTimeout")(fields, {
  httpApiStatus: 408,
}) {}
export class Conflict extends Schema.Error<Conflict>("Conflict")(fields, { httpApiStatus: 409 }) {}
export class TooLarge extends Schema.Error<TooLarge>("TooLarge")(fields, { httpApiStatus: 413 }) {}
export class UnsupportedMedia extends Schema.Error<UnsupportedMedia>("UnsupportedMedia")(fields, {
  httpApiStatus: 415,
}) {}
export class Unprocessable extends Schema.Error<Unprocessable>("Unprocessable")(fields, {
  httpApiStatus: 422,
}) {}
export class TooMany extends Schema.Error<TooMany>("TooMany")(fields, { httpApiStatus: 429 }) {}
export class Internal extends Schema.Error<Internal>("Internal")(fields, { httpApiStatus: 500 }) {}
export class BadGateway extends Schema.Error<BadGateway>("BadGateway")(fields, { httpApiStatus: 502 }) {}
export class Unavailable extends Schema.Error<Unavailable>("Unavailable")(fields, { httpApiStatus: 503 }) {}
export class GatewayTimeout extends Schema.Error<GatewayTimeout>("GatewayTimeout")(fields, {
  httpApiStatus: 504,
}) {}

const STATUSES = [
  [BadRequest, 400],
  [Unauthorized, 401],
  [Forbidden, 403],
  [NotFound, 404],
  [RequestTimeout, 408],
  [Conflict, 409],
  [TooLarge, 413],
  [UnsupportedMedia, 415],
  [Unprocessable, 422],
  [TooMany, 429],
  [Internal, 500],
  [BadGateway, 502],
  [Unavailable, 503],
  [GatewayTimeout, 504],
] as const;

export type ApiError = InstanceType<(typeof STATUSES)[number][0]>;

export const isApiError = (error: unknown): error is ApiError =>
  STATUSES.some(([ErrorClass]) => error instanceof ErrorClass);

/** The status of an error's class, for answers that no endpoint definition encodes. */
export const errorStatus = (error: ApiError): number =>
  STATUSES.find(([ErrorClass]) => error instanceof ErrorClass)?.[1] ?? 500;

/** The common shape, without the fields of an Error object. */
export const errorBody = ({ error, code, details }: ApiError) => ({
  error,
  code,
  ...(details === undefined ? {} : { details }),
});

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The answer for a record that does not exist, and for one of another account (threats.md T05). */
export const notFound = (what: string): NotFound =>
  new NotFound({ error: `${capitalize(what)} not found.`, code: "not_found" });

export const internalError = () =>
  new Internal({ error: "Internal error. The cause is in the service's log.", code: "internal_error" });

export const unsupportedMedia = () =>
  new UnsupportedMedia({ error: "Send the body as application/json.", code: "unsupported_media_type" });

/**
 * One fault of a request as a sentence: "`limit` must be between 1 and 200.", "Unknown field `prompt`."
 *
 * @param path of the field; empty for the whole of `part`
 * @param message "must be …", "unknown field", "unknown field. Known: a, b", or a whole sentence
 */
export const faultSentence = (path: string, message: string, part = "body"): string => {
  const text = message.replace(/\.$/, "");
  if (path === "") return text.startsWith("must ") ? `The ${part} ${text}.` : `Invalid ${part}: ${text}.`;
  if (text.startsWith("must ")) return `\`${path}\` ${text}.`;
  const [, lack, known = ""] = /^((?:unknown|missing) [^.]+)(\. Known: .+)?$/.exec(text) ?? [];
  if (lack !== undefined) return `${capitalize(lack)} \`${path}\`${known}.`;
  return `Invalid \`${path}\`: ${text}.`;
};

export const badRequest = (path: string, message: string): BadRequest =>
  new BadRequest({
    error: faultSentence(path, message),
    code: "invalid_request",
    details: { issues: [{ path, message }] },
  });
