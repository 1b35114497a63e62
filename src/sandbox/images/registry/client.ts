/**
 * Speaks to registries of container images by their common protocol (OCI distribution). A registry asks for credentials with a
 * challenge. Without credentials, a token for everybody is fetched where the registry gives one.
 *
 *  R1 Credentials are sent to the registry, and to the server of tokens that the registry names. Both speak TLS, unless the
 *     operator has chosen a registry without it.
 *  R2 Every failure is a RegistryFailure, whose message is for people and has no credentials.
 *  R3 Answers that are read have a limit.
 */
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import * as Schema from "effect/Schema";
import { isImageDigest } from "../../../domain/environment/registry-reference.ts";
import { type NetAnswer, type NetRequest, readBody } from "../../../ground/net/client.ts";
import { NetFault } from "../../../ground/net/fault.ts";
import { thrownText } from "../../../ground/thrown.ts";
import { Refusal } from "../../egress-messages.ts";

export type RegistryProblem =
  /** 401: there are no credentials, or the registry does not accept them. */
  | "unauthorized"
  /** 403: the credentials have no right to do this. */
  | "forbidden"
  | "missing"
  /** 429: it has been asked too often. */
  | "limited"
  /** There is no room for more. */
  | "full"
  | "unreachable"
  | "unexpected";

export class RegistryFailure extends Error {
  readonly problem: RegistryProblem;
  /** The registry asks to wait so long, in milliseconds. Null if it does not say. */
  readonly waitMs: number | null;
  constructor(problem: RegistryProblem, message: string, waitMs: number | null = null) {
    super(message);
    this.problem = problem;
    this.waitMs = waitMs;
  }
}

/** Sends one request. A `Refusal` says why it could not be sent, a `NetFault` why there is no answer. */
export type AskRegistry = (request: NetRequest) => Promise<NetAnswer>;

export interface RegistryPlace {
  /** `https://…`, or `http://…` if the operator has chosen so. */
  readonly origin: URL;
  /** The path of the images, e.g. `team/tools`. */
  readonly repository: string;
}

export interface RegistryCredentials {
  readonly username: string;
  readonly password: string;
}

export interface RegistryOptions {
  readonly place: RegistryPlace;
  readonly rights: "pull" | "pull,push";
  readonly credentials: RegistryCredentials | null;
  readonly ask: AskRegistry;
}

/** One request to the registry. */
export interface RegistryRequest {
  readonly method: "DELETE" | "GET" | "HEAD" | "POST" | "PUT";
  /** Below `/v2/<repository>/`, or an address that the registry has named. */
  readonly to: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes the body, also for a second try with credentials. */
  readonly body?: () => Readable;
  readonly signal: AbortSignal;
}

/** The largest answer that is read as a whole, in bytes. */
const ANSWER_MAX = 4 * 1024 * 1024;
/** How much of a registry's own message is passed on, in characters. */
const SAID_MAX = 200;
/** The longest pause that a registry can ask for: one day. */
const WAIT_MAX_MS = 24 * 60 * 60_000;

export const MANIFEST_TYPES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];

/** Reads an answer. @throws RegistryFailure */
const readBytes = ({ body }: NetAnswer, host: string): Promise<Buffer> =>
  readBody(body, { host, maxBytes: ANSWER_MAX }).catch((error: unknown) => {
    throw new RegistryFailure("unexpected", thrownText(error));
  });

const Token = Schema.fromJsonString(
  Schema.Struct({
    token: Schema.optionalKey(Schema.String),
    access_token: Schema.optionalKey(Schema.String),
  }),
);
const decodeToken = Schema.decodeUnknownOption(Token);
const Errors = Schema.fromJsonString(
  Schema.Struct({
    errors: Schema.Array(
      Schema.Struct({ code: Schema.optionalKey(Schema.String), message: Schema.optionalKey(Schema.String) }),
    ),
  }),
);
const decodeErrors = Schema.decodeUnknownOption(Errors);

const readHeader = ({ headers }: NetAnswer, name: string): string | null => {
  const value = headers[name];
  return typeof value === "string" ? value : (value?.[0] ?? null);
};

/** A challenge, e.g. `Bearer realm="https://…",service="…"`. */
const parseChallenge = (
  text: string | null,
): { readonly scheme: string; readonly fields: Map<string, string> } => {
  const [, scheme = "", rest = ""] = /^\s*(\w+)\s*(.*)$/s.exec(text ?? "") ?? [];
  const fields = [...rest.matchAll(/(\w+)="([^"]*)"/g)].map(
    ([, name = "", value = ""]) => [name, value] as const,
  );
  return { scheme: scheme.toLowerCase(), fields: new Map(fields) };
};

const basic = ({ username, password }: RegistryCredentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

const retryWait = (answer: NetAnswer): number | null => {
  const seconds = Number(readHeader(answer, "retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, WAIT_MAX_MS) : null;
};

export class Registry {
  readonly #options: RegistryOptions;
  /** The header that the registry accepted last. */
  #authorization: string | null = null;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  get host(): string {
    return this.#options.place.origin.host;
  }

  /** The address of something in the repository. */
  url(to: string | URL): URL {
    const { origin, repository } = this.#options.place;
    return typeof to === "string" ? new URL(`/v2/${repository}/${to}`, origin) : to;
  }

  /**
   * Sends a request, a second time with credentials if the registry asks for them.
   * @param statuses statuses that the caller handles. The caller reads or drops the body.
   * @throws RegistryFailure for every other status, or without an answer
   */
  async request(request: RegistryRequest, statuses: readonly number[]): Promise<NetAnswer> {
    const first = await this.#send(request);
    if (first.statusCode !== 401) return this.#judge(first, statuses);
    const challenge = readHeader(first, "www-authenticate");
    await drop(first);
    this.#authorization = await this.#answerTo(challenge, request.signal);
    return this.#judge(await this.#send(request), statuses);
  }

  async #send({ method, to, headers = {}, body, signal }: RegistryRequest): Promise<NetAnswer> {
    const url = this.url(to);
    // R1: an upload may continue on another host, which gets no credentials.
    const isOwn = url.origin === this.#options.place.origin.origin;
    const authorization = isOwn && this.#authorization !== null ? { authorization: this.#authorization } : {};
    return this.#ask({
      url,
      method,
      headers: { ...headers, ...authorization },
      body: body?.() ?? null,
      signal,
    });
  }

  async #ask(request: NetRequest): Promise<NetAnswer> {
    try {
      return await this.#options.ask(request);
    } catch (error) {
      if (error instanceof RegistryFailure) throw error;
      const isKnown = error instanceof Refusal || error instanceof NetFault;
      const why = isKnown ? error.message : `${request.url.host} did not answer`;
      throw new RegistryFailure("unreachable", `the registry cannot be reached: ${why}`);
    }
  }

  /** The header that answers a challenge. */
  async #answerTo(challenge: string | null, signal: AbortSignal): Promise<string> {
    const { credentials } = this.#options;
    const { scheme, fields } = parseChallenge(challenge);
    if (scheme === "basic" && credentials !== null) return basic(credentials);
    const realm = URL.parse(fields.get("realm") ?? "");
    if (scheme !== "bearer" || realm === null) throw this.#unauthorized();
    if (realm.protocol !== "https:" && realm.protocol !== this.#options.place.origin.protocol)
      throw new RegistryFailure("unexpected", `${this.host} sends credentials to ${realm.host} without TLS`);
    const { place, rights } = this.#options;
    const service = fields.get("service");
    if (service !== undefined) realm.searchParams.set("service", service);
    realm.searchParams.set("scope", `repository:${place.repository}:${rights}`);
    const headers = credentials === null ? {} : { authorization: basic(credentials) };
    const answer = await this.#ask({ url: realm, headers, signal });
    if (answer.statusCode !== 200) return drop(answer).then(() => Promise.reject(this.#tokenRefused(answer)));
    const tokenAnswer = decodeToken((await readBytes(answer, this.host)).toString("utf8"));
    const token =
      tokenAnswer._tag === "Some" ? (tokenAnswer.value.token ?? tokenAnswer.value.access_token) : undefined;
    if (token === undefined) throw new RegistryFailure("unexpected", `${realm.host} gave no token`);
    return `Bearer ${token}`;
  }

  #tokenRefused(answer: NetAnswer): RegistryFailure {
    if (answer.statusCode === 429)
      return new RegistryFailure("limited", `${this.host} has been asked too often`, retryWait(answer));
    return answer.statusCode >= 500
      ? new RegistryFailure(
          "unexpected",
          `the server of tokens for ${this.host} answered ${answer.statusCode}`,
        )
      : this.#unauthorized();
  }

  #unauthorized(): RegistryFailure {
    return new RegistryFailure(
      "unauthorized",
      this.#options.credentials === null
        ? `${this.host} asks for credentials for ${this.#options.place.repository} (401)`
        : `${this.host} does not accept the credentials for ${this.#options.place.repository} (401)`,
    );
  }

  async #judge(answer: NetAnswer, statuses: readonly number[]): Promise<NetAnswer> {
    const { statusCode: status } = answer;
    if (statuses.includes(status)) return answer;
    const waitMs = retryWait(answer);
    const errors = decodeErrors(
      (await readBytes(answer, this.host).catch(() => Buffer.from(""))).toString("utf8"),
    );
    const [said] = errors._tag === "Some" ? errors.value.errors : [];
    const text = [said?.code, said?.message]
      .filter(Boolean)
      .join(": ")
      .replaceAll(/[^\x20-\x7e]/g, "?");
    const detail = text === "" ? String(status) : `${status}, ${text.slice(0, SAID_MAX)}`;
    const { repository } = this.#options.place;
    if (status === 401) throw this.#unauthorized();
    if (status === 429) throw new RegistryFailure("limited", `${this.host} has been asked too often`, waitMs);
    if (status === 404)
      throw new RegistryFailure("missing", `${this.host} does not have it in ${repository} (${detail})`);
    if (status === 413 || status === 507 || /quota|storage|insufficient space/i.test(text))
      throw new RegistryFailure("full", `${this.host} has no room for it in ${repository} (${detail})`);
    if (status === 403)
      throw new RegistryFailure("forbidden", `${this.host} does not allow this in ${repository} (${detail})`);
    throw new RegistryFailure("unexpected", `${this.host} answered ${detail}`);
  }

  /**
   * The digest that a tag has now.
   * @throws RegistryFailure
   */
  async tagDigest(tag: string, signal: AbortSignal): Promise<string> {
    const query = { to: `manifests/${tag}`, headers: { accept: MANIFEST_TYPES.join(", ") }, signal };
    const head = await this.request({ ...query, method: "HEAD" }, [200, 405]);
    await drop(head);
    const headerDigest = readHeader(head, "docker-content-digest");
    if (head.statusCode === 200 && headerDigest !== null && isImageDigest(headerDigest)) return headerDigest;
    const answer = await this.request({ ...query, method: "GET" }, [200]);
    return `sha256:${createHash("sha256")
      .update(await readBytes(answer, this.host))
      .digest("hex")}`;
  }
}

/** Reads the rest of an answer, which is not used. */
export const drop = async ({ body }: NetAnswer): Promise<void> => {
  await body.dump().catch(() => undefined);
};
