/**
 * Which authorization server issues the tokens of a connector's server: from its challenge and its metadata (RFC 9728), then
 * from the metadata of that server (RFC 8414, OpenID Connect Discovery).
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { OAuthClient, SignInServer } from "../domain/connector/connector-grant.ts";
import {
  coversUrl,
  readChallenge,
  resourceMetadataUrls,
  defaultResource,
  serverMetadataUrls,
  type Challenge,
} from "../domain/connector/protected-resource.ts";
import { AskFault, type Ask } from "./asking.ts";
import { isClientId } from "../domain/connector/connector.ts";
import type { ConnectorKind } from "../domain/connector/connector-kind.ts";
import { isToken } from "../domain/connector/connector-grant.ts";
import type { SignInFault } from "./sign-in/port.ts";

/** A reason that the service itself found. */
export class SignInRefusal extends Error {
  readonly kind: SignInFault["kind"];
  constructor(kind: SignInFault["kind"], why: string) {
    super(why);
    this.kind = kind;
  }
}

export interface SignInPlace {
  readonly server: SignInServer;
  readonly resource: string;
  /** What the challenge asks for. */
  readonly scope: string | null;
}

const ResourceMetadata = Schema.Struct({
  resource: Schema.String,
  authorization_servers: Schema.optionalKey(Schema.Array(Schema.String)),
});
const Registered = Schema.Struct({
  client_id: Schema.String,
  client_secret: Schema.optionalKey(Schema.String),
});

/** Where a connector's server is, and what it is. */
interface Place {
  readonly url: string;
  readonly kind: ConnectorKind;
  /** The authorization server that the manifest names. If null, the connector's server is asked. */
  readonly issuer: string | null;
}

const JSON_TYPE = { accept: "application/json" };

/** A call without a credential: a server that wants one answers 401 and says where to get it. */
const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "platform", version: "1" },
  },
});

const requestChallenge = async (ask: Ask, { url, kind }: Place): Promise<Challenge> => {
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const answer = await (kind === "mcp"
    ? ask(url, { method: "POST", headers, body: INITIALIZE })
    : ask(url, { headers: JSON_TYPE }));
  return readChallenge(answer.status === 401 ? answer.headers.get("www-authenticate") : null);
};

/** A JSON document. */
const documentAt = async <A>(ask: Ask, url: string, schema: Schema.Codec<A, unknown>): Promise<A | null> => {
  const answer = await ask(url, { headers: JSON_TYPE });
  if (answer.status >= 400 && answer.status < 500) return null;
  return readAnswer(url, answer, schema);
};

const readAnswer = async <A>(url: string, answer: Response, schema: Schema.Codec<A, unknown>): Promise<A> => {
  const { host } = new URL(url);
  if (!answer.ok) throw new AskFault(host, `answered with status ${answer.status}`);
  const read = Schema.decodeUnknownResult(Schema.fromJsonString(schema))(await answer.text());
  if (Result.isSuccess(read)) return read.success;
  throw new SignInRefusal("refused", `${host} answered with a document that lacks what it must have`);
};

/** The authorization server of a connector, and what its tokens are for. */
const resourceAt = async (ask: Ask, url: string, { metadata }: Challenge) => {
  const places = metadata === null ? resourceMetadataUrls(url) : [metadata];
  for (const place of places) {
    // oxlint-disable-next-line no-await-in-loop -- one place after the other, in the order of preference
    const document = await documentAt(ask, place, ResourceMetadata);
    if (document === null) continue;
    const { resource, authorization_servers: [issuer] = [] } = document;
    if (!coversUrl(resource, url))
      throw new SignInRefusal("refused", `The metadata of ${new URL(url).host} is about another server`);
    if (issuer === undefined) break;
    return { resource, issuer };
  }
  // Servers from before RFC 9728 are their own authorization servers.
  return { resource: defaultResource(url), issuer: new URL(url).origin };
};

/** The metadata of an authorization server. @param address where its metadata are, by RFC 8414 */
const metadataAt = async (ask: Ask, address: string): Promise<SignInServer | null> => {
  if (URL.parse(address) === null)
    throw new SignInRefusal("refused", "The server names an authorization server that is no URL");
  for (const place of serverMetadataUrls(address)) {
    // oxlint-disable-next-line no-await-in-loop -- one place after the other, in the order of preference
    const document = await documentAt(ask, place, SignInServer);
    if (document !== null) return document;
  }
  return null;
};

/** RFC 8414, 3.3. A final slash makes no other server. */
const isSameIssuer = (one: string, other: string): boolean =>
  one.replace(/\/$/, "") === other.replace(/\/$/, "");

const displayIssuer = (issuer: string): string => JSON.stringify(issuer.slice(0, 300));

const serverAt = async (ask: Ask, issuer: string): Promise<SignInServer> => {
  const server = await metadataAt(ask, issuer);
  if (server === null)
    throw new SignInRefusal(
      "unsupported",
      `${new URL(issuer).host} does not say how to sign in there. Another authorization server can be named with issuer in platform.toml`,
    );
  if (!isSameIssuer(server.issuer, issuer))
    throw new SignInRefusal(
      "refused",
      `The metadata of the authorization server ${displayIssuer(issuer)} are about another issuer, ${displayIssuer(server.issuer)}. If that is the right one, write issuer = ${displayIssuer(server.issuer)} in platform.toml`,
    );
  return server;
};

/**
 * The server that the manifest names. Its metadata may be at the address that the connector's server names, if both have one origin: the
 * client's secret goes to no other origin than that of the issuer that a person wrote.
 */
const namedServer = async (ask: Ask, place: Place, issuer: string): Promise<SignInServer> => {
  const direct = await metadataAt(ask, issuer);
  if (direct !== null && isSameIssuer(direct.issuer, issuer)) return direct;
  const { issuer: address } = await resourceAt(ask, place.url, await requestChallenge(ask, place));
  const isNear = URL.parse(address)?.origin === new URL(issuer).origin && !isSameIssuer(address, issuer);
  const server = isNear ? await metadataAt(ask, address) : null;
  return server !== null && isSameIssuer(server.issuer, issuer) ? server : serverAt(ask, issuer);
};

export const discover = async (ask: Ask, place: Place): Promise<SignInPlace> => {
  const { url } = place;
  // The connector's server is asked only if the issuer has no metadata: it may not have any itself.
  if (place.issuer !== null)
    return {
      resource: defaultResource(url),
      scope: null,
      server: await namedServer(ask, place, place.issuer),
    };
  const challenge = await requestChallenge(ask, place);
  const { resource, issuer } = await resourceAt(ask, url, challenge);
  return { resource, scope: challenge.scope, server: await serverAt(ask, issuer) };
};

/** Registers the service as a client (RFC 7591), for one redirect address. */
export const register = async (
  ask: Ask,
  server: SignInServer,
  wish: { readonly clientName: string; readonly redirectUri: string; readonly scope: string | null },
): Promise<OAuthClient> => {
  const { registration_endpoint: endpoint, token_endpoint_auth_methods_supported: methods } = server;
  if (endpoint === undefined)
    throw new SignInRefusal(
      "needs_client",
      `No client is stored, and ${new URL(server.issuer).host} registers none by itself. Register one there, with the redirect address ${wish.redirectUri}, and store its id and secret`,
    );
  const answer = await ask(endpoint, {
    method: "POST",
    headers: { ...JSON_TYPE, "content-type": "application/json" },
    body: JSON.stringify({
      client_name: wish.clientName,
      redirect_uris: [wish.redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: methods?.includes("none") === false ? authMethod(methods) : "none",
      ...(wish.scope !== null && { scope: wish.scope }),
    }),
  });
  const { host } = new URL(endpoint);
  if (answer.status >= 400 && answer.status < 500)
    throw new SignInRefusal("refused", `${host} refused to register this service (status ${answer.status})`);
  const { client_id: id, client_secret: secret } = await readAnswer(endpoint, answer, Registered);
  if (!isClientId(id) || (secret !== undefined && !isToken(secret)))
    throw new SignInRefusal("refused", `${host} registered this service under an id that cannot be used`);
  return { id, secret: secret ?? null };
};

/** How a client with a secret proves itself: in the body if the server knows that, otherwise in the header, the default of RFC 8414. */
export const authMethod = (
  methods: readonly string[] | undefined,
): "client_secret_post" | "client_secret_basic" =>
  methods?.includes("client_secret_post") === true ? "client_secret_post" : "client_secret_basic";
