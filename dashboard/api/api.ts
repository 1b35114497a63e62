/** The page's calls to the service: with the cookie of the dashboard's session, and a CSRF token on every change. client.ts has the answers' types. */
/* eslint-disable typescript/no-explicit-any -- an answer by its path has no type */

/** Long enough for a merge of a large repository. */
const TIMEOUT_MS = 30_000;

/** A refusal by the service, in its own words (api.md 1 "Errors"). */
export class ApiError extends Error {
  /** 0: no answer at all. */
  readonly status: number;
  readonly code: string;
  readonly details: any;

  constructor(status: number, { code, error, details }: { code: string; error: string; details?: any }) {
    super(error);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

let csrf = "";

/** A file may be large, and the reader's line slow. The service waits as long. */
const UPLOAD_TIMEOUT_MS = 120_000;

/** @param path with its query @param content body: a file is sent as it is, anything else as JSON */
export const call = async (
  method: string,
  path: string,
  { body, timeoutMs }: { body?: unknown; timeoutMs?: number | undefined } = {},
) => {
  const file = body instanceof Blob ? body : null;
  const headers: Record<string, string> = { accept: "application/json, text/plain" };
  if (method !== "GET") headers["x-csrf-token"] = csrf;
  if (body !== undefined) headers["content-type"] = file === null ? "application/json" : fileType(file);
  let answer: Response;
  try {
    // eslint-disable-next-line no-restricted-globals -- the browser's own client, used in this one place
    answer = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: file ?? JSON.stringify(body) }),
      credentials: "same-origin",
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs ?? (file === null ? TIMEOUT_MS : UPLOAD_TIMEOUT_MS)),
    });
  } catch {
    throw new ApiError(0, { code: "unreachable", error: "The service does not respond." });
  }
  const text = await answer.text();
  if (answer.ok) return text;
  throw new ApiError(answer.status, {
    code: "unknown",
    error: `The service responded with status ${answer.status}.`,
    ...parse(text),
  });
};

const fileType = ({ type }: Blob) => (type === "" ? "application/octet-stream" : type);

/** @returns null if it is not JSON */
const parse = (text: string): any => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

export const getJson = async (path: string): Promise<any> => parse(await call("GET", path));
export const getText = (path: string) => call("GET", path);
export const post = async (path: string, body: unknown = {}, timeoutMs?: number): Promise<any> =>
  parse(await call("POST", path, { body, timeoutMs }));

export const upload = async (path: string, file: Blob): Promise<any> =>
  parse(await call("POST", path, { body: file }));

export const remove = async (path: string) => {
  await call("DELETE", path);
};

/** Resumes the cookie's session. Throws an ApiError with status 401 without one. */
export const resume = async () => {
  csrf = (await getJson("/dashboard/session")).csrf;
};

/** @param token a personal access token */
export const signIn = async (token: string) => {
  csrf = (await post("/dashboard/session", { token })).csrf;
};

/** Accepts an invitation. The answer signs the new person in. @returns her first token */
export const join = async (code: string, name: string): Promise<string> => {
  const answer = await post("/dashboard/invitations/accept", { code, name });
  csrf = answer.csrf;
  return answer.token;
};

export const signOut = async () => {
  await call("DELETE", "/dashboard/session");
  csrf = "";
};
