/**
 * What a person sees of the arguments of an agent's call.
 *
 *  H1 A person sees every field of the arguments. Only values are masked, and a masked value shows its length. An agent chooses the names
 *     of fields, so a value that is masked for its field's name is shown when the person wishes it. A secret of the project never is.
 */
import type { Redactor } from "../secret/redactor.ts";

/** Names of fields whose values are masked: password, api_key, accessToken, client-secret, Authorization, cookie. */
const SECRET_FIELD =
  /pass(?:word|wd|phrase)|secret|token|credential|(?:api|access|private|signing)[_-]?key|^auth(?:orization)?$|cookie/i;

const hiddenText = (value: unknown): string =>
  `[hidden, ${(typeof value === "string" ? value : JSON.stringify(value)).length} characters]`;

/**
 * The arguments as a person sees them (H1).
 *
 * @param value at most `DEPTH_LIMIT` levels deep (catalogue.ts).
 * @param showsHidden whether the person wishes to see the values that are masked for their field's name
 */
export const shownArguments = (secrets: Redactor, value: unknown, showsHidden = false): unknown => {
  if (typeof value === "string") return secrets.redact(value);
  if (Array.isArray(value)) return value.map((inner) => shownArguments(secrets, inner, showsHidden));
  if (typeof value !== "object" || value === null) return value;
  // fromEntries defines fields, so that `__proto__` stays a field.
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      secrets.redact(name),
      !showsHidden && SECRET_FIELD.test(name) && inner !== null && inner !== ""
        ? hiddenText(inner)
        : shownArguments(secrets, inner, showsHidden),
    ]),
  );
};
