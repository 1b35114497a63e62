/**
 * A request of an HTTP API that is offered as a tool, and how an agent's arguments become part of it.
 *
 *  HT1 A request stays on its template: below the connector's URL, with the segments of the path that a person accepted. No argument
 *      adds a segment, a parameter or a header of its own, or replaces one that the connector sets.
 *  HT2 An argument that could be read in two ways is refused, in a sentence for the agent. Nothing is removed or repaired.
 */
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";

/** The methods that a tool may have. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

/**
 * How a value with parts is written. `plain`: it has no parts. `repeat`: `a=1&a=2`. `comma`, `space`, `pipe`: parts in one value.
 * `deep`: `a[b]=1`. `json`: as JSON.
 */
export type ParameterStyle = "plain" | "repeat" | "comma" | "space" | "pipe" | "deep" | "json";

export interface HttpParameter {
  /** The argument that has the value. */
  readonly argument: string;
  /** The parameter's name in the request. */
  readonly name: string;
  /** `field`: a field of the body. */
  readonly in: "path" | "query" | "header" | "field";
  readonly style: ParameterStyle;
  readonly required: boolean;
}

export interface HttpBody {
  /** Its media type. */
  readonly type: string;
  readonly encoding: "json" | "form";
  /** The argument that is the whole body. If null, the body consists of the parameters that are fields. */
  readonly argument: string | null;
  readonly required: boolean;
}

export interface HttpOperation {
  readonly method: Method;
  /** Below the connector's URL. It begins with `/`, and `{name}` stands for a parameter. */
  readonly path: string;
  readonly parameters: readonly HttpParameter[];
  readonly body: HttpBody | null;
}

/** Where requests go, with what the connector itself sets. */
export interface RequestBase {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface HttpRequest {
  readonly method: Method;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

type Arguments = Readonly<Record<string, unknown>>;

/** The longest value of one parameter outside the body, and the longest URL. Many servers refuse more. */
export const VALUE_LIMIT = 4096;
export const ADDRESS_LIMIT = 8192;

/** Headers that the connection, the credential or the protocol sets. */
const OWN_HEADER =
  /^(?:accept|accept-encoding|authorization|connection|content-.*|cookie|expect|forwarded|host|keep-alive|last-event-id|mcp-.*|origin|proxy-.*|referer|te|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*|x-http-method.*|x-original-.*|x-rewrite-.*)$/i;
const HEADER_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** Whether an argument may be the value of this header. */
export const isArgumentHeader = (name: string): boolean => HEADER_NAME.test(name) && !OWN_HEADER.test(name);

const PLACEHOLDER = /\{([^{}/]+)\}/g;
/** RFC 3986, 3.3, without what could be read as another path. */
const LITERAL = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%(?!2[ef]|5c|00)[0-9a-f]{2})*$/i;

/** The names in a template's braces. */
export const pathPlaceholders = (path: string): readonly string[] =>
  [...path.matchAll(PLACEHOLDER)].map(([, name]) => name ?? "");

/** @returns the fault of a template of a path, as the end of a sentence. */
export const pathFault = (path: string): string | null => {
  if (!path.startsWith("/") || path.length > 1024)
    return "must begin with / and have at most 1024 characters";
  const names = pathPlaceholders(path);
  if (new Set(names).size < names.length) return "must not have a name in braces twice";
  const literal = path.replaceAll(PLACEHOLDER, "x");
  if (!LITERAL.test(literal)) return "must have only characters of a URL's path, and names in braces";
  return hasDotSegment(literal) || literal.includes("//") ? "must not have an empty segment, . or .." : null;
};

const hasDotSegment = (path: string): boolean =>
  path.split("/").some((each) => each === "." || each === "..");

/** Why a call cannot be sent, as a sentence. */
class Refused extends Error {}

const refuse = (why: string): never => {
  throw new Refused(why);
};

/**
 * The request of a call.
 *
 * @param base with the credential, or without it to check the arguments.
 * @returns the request, or a sentence about the argument that is wrong.
 */
export const operationRequest = (
  base: RequestBase,
  operation: HttpOperation,
  values: Arguments,
): Result.Result<HttpRequest, string> => {
  try {
    checkNames(operation, values);
    const url = requestAddress(base, operation, values);
    const headers = requestHeaders(base, operation, values);
    const { method, body } = operation;
    const text = body === null ? null : requestBody(body, operation, values);
    if (text !== null && body !== null) headers.set("content-type", body.type);
    return Result.succeed({ method, url, headers: Object.fromEntries(headers), body: text });
  } catch (error) {
    if (error instanceof Refused) return Result.fail(error.message);
    throw error;
  }
};

const argumentNames = ({ parameters, body }: HttpOperation): readonly string[] => [
  ...parameters.map(({ argument }) => argument),
  ...(body?.argument == null ? [] : [body.argument]),
];

const checkNames = (operation: HttpOperation, values: Arguments): void => {
  const names = argumentNames(operation);
  const stray = Object.keys(values).find((name) => !names.includes(name));
  if (stray === undefined) return;
  const has = names.length === 0 ? "It has none." : `It has ${names.join(", ")}.`;
  refuse(`The tool has no argument ${JSON.stringify(stray.slice(0, 64))}. ${has}`);
};

/** The value of an argument. Undefined: it was not given. */
const argumentValue = (
  values: Arguments,
  { argument, required, in: place }: Pick<HttpParameter, "argument" | "required" | "in">,
): unknown => {
  const value = Object.hasOwn(values, argument) ? values[argument] : undefined;
  // Null is a value in a body only.
  const isAbsent = value === undefined || (value === null && place !== "field");
  if (isAbsent && required) refuse(`The argument ${argument} is required.`);
  return isAbsent ? undefined : value;
};

/** A value without parts, as text. */
const scalar = (argument: string, value: unknown): string => {
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)))
    return String(value);
  if (typeof value !== "string")
    return refuse(`The argument ${argument} must be a text, a number or a boolean.`);
  if (value.length > VALUE_LIMIT) refuse(`The argument ${argument} has more than ${VALUE_LIMIT} characters.`);
  if (!value.isWellFormed() || /\p{Cc}/u.test(value))
    refuse(`The argument ${argument} must not have control characters or half characters.`);
  return value;
};

const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );

const SEPARATORS: Partial<Record<ParameterStyle, string>> = { comma: ",", space: "%20", pipe: "%7C" };

/** Values that are written one after the other, each as a text. */
const parts = (argument: string, value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map((each) => scalar(argument, each)) : [scalar(argument, value)];

/** The parts of a query or a form that one parameter makes: pairs whose two sides are encoded. */
const queryPairs = ({ argument, name, style }: HttpParameter, value: unknown): readonly string[] => {
  const pair = (key: string, text: string): string => `${encode(key)}=${text}`;
  const separator = SEPARATORS[style];
  if (style === "json") return [pair(name, encode(scalar(argument, JSON.stringify(value))))];
  if (separator !== undefined) return [pair(name, parts(argument, value).map(encode).join(separator))];
  if (style === "deep") {
    if (!isRecord(value)) return refuse(`The argument ${argument} must be an object.`);
    return Object.entries(value).map(([key, inner]) => {
      if (!/^[\w.-]{1,64}$/.test(key)) refuse(`The argument ${argument} must have plain names of fields.`);
      return pair(`${name}[${key}]`, encode(scalar(argument, inner)));
    });
  }
  const values = style === "repeat" ? parts(argument, value) : [scalar(argument, value)];
  return values.map((text) => pair(name, encode(text)));
};

const AMBIGUOUS = /[/\\]|%[0-9a-f]{2}/i;

/** The path below the connector's URL (HT1). */
const fillPath = ({ path, parameters }: HttpOperation, values: Arguments): string => {
  const filledPath = path.replaceAll(PLACEHOLDER, (_, name: string) => {
    const parameter = parameters.find((each) => each.in === "path" && each.name === name);
    if (parameter === undefined) return refuse(`The tool's path has no value for ${name}.`);
    const { argument, style } = parameter;
    const value = argumentValue(values, { ...parameter, required: true });
    const texts = style === "comma" ? parts(argument, value) : [scalar(argument, value)];
    if (texts.some((text) => text === "" || AMBIGUOUS.test(text)))
      refuse(
        `The argument ${argument} is part of the path. It must not be empty or have /, \\ or an escape such as %2f.`,
      );
    return texts.map(encode).join(",");
  });
  if (hasDotSegment(filledPath)) refuse("The arguments must not make a segment of the path . or ..");
  return filledPath;
};

const requestAddress = (base: RequestBase, operation: HttpOperation, values: Arguments): string => {
  const root = new URL(base.url);
  const path = `${root.pathname.replace(/\/$/, "")}${fillPath(operation, values)}`;
  const query = operation.parameters.flatMap((parameter) => {
    if (parameter.in !== "query") return [];
    const value = argumentValue(values, parameter);
    if (value !== undefined && root.searchParams.has(parameter.name))
      refuse(`The argument ${parameter.argument} is set by the connector itself.`);
    return value === undefined ? [] : queryPairs(parameter, value);
  });
  const own = root.search.slice(1);
  const search = [...(own === "" ? [] : [own]), ...query].join("&");
  const text = `${root.origin}${path}${search === "" ? "" : `?${search}`}`;
  if (text.length > ADDRESS_LIMIT) refuse(`The call's URL would have more than ${ADDRESS_LIMIT} characters.`);
  const address = URL.parse(text);
  if (address === null || address.origin !== root.origin || address.pathname !== path || address.hash !== "")
    return refuse("The arguments do not fit into the path of the tool.");
  return address.href;
};

const requestHeaders = (
  base: RequestBase,
  { parameters }: HttpOperation,
  values: Arguments,
): Map<string, string> => {
  const set = new Map(Object.entries(base.headers).map(([name, value]) => [name.toLowerCase(), value]));
  for (const parameter of parameters) {
    if (parameter.in !== "header") continue;
    const value = argumentValue(values, parameter);
    if (value === undefined) continue;
    const { argument, style } = parameter;
    const name = parameter.name.toLowerCase();
    if (set.has(name) || !isArgumentHeader(name))
      refuse(`The argument ${argument} is set by the connector itself.`);
    const text = style === "comma" ? parts(argument, value).join(",") : pairless(parameter, value);
    if (!/^[ -~]*$/.test(text) || text.trim() !== text)
      refuse(`The argument ${argument} is a header. It must be one line of ASCII characters.`);
    set.set(name, text);
  }
  return set;
};

const pairless = ({ argument, style }: HttpParameter, value: unknown): string =>
  scalar(argument, style === "json" ? JSON.stringify(value) : value);

/** A field of a form may be longer than a parameter of a URL. */
const formField = (name: string, value: unknown): readonly (readonly [string, string])[] =>
  (Array.isArray(value) ? value : [value]).map((each: unknown) => {
    if (typeof each !== "string" && typeof each !== "number" && typeof each !== "boolean")
      return refuse(`The field ${name} must be a text, a number, a boolean or a list of them.`);
    const text = String(each);
    return text.isWellFormed() ? [name, text] : refuse(`The field ${name} has half characters.`);
  });

const requestBody = (
  { encoding, argument, required }: HttpBody,
  { parameters }: HttpOperation,
  values: Arguments,
): string | null => {
  const whole =
    argument === null
      ? bodyFields(parameters, values)
      : argumentValue(values, { argument, required, in: "field" });
  if (whole === undefined) return null;
  if (encoding === "json") return JSON.stringify(whole);
  if (!isRecord(whole)) return refuse(`The argument ${argument ?? ""} must be an object.`);
  const fields = Object.entries(whole).flatMap(([name, value]) => formField(name, value));
  return new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value])).toString();
};

const bodyFields = (parameters: readonly HttpParameter[], values: Arguments): Arguments =>
  Object.fromEntries(
    parameters.flatMap((parameter) => {
      if (parameter.in !== "field") return [];
      const value = argumentValue(values, parameter);
      return value === undefined ? [] : [[parameter.name, value] as const];
    }),
  );
