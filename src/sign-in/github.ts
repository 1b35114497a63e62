/**
 * GitHub. It has OAuth but no ID tokens for its users, so its API says who came back. The code flow is openid-client's, as
 * for the other provider: one implementation checks state and PKCE.
 */
import {
  ClientSecretPost,
  Configuration,
  allowInsecureRequests,
  customFetch,
  fetchProtectedResource,
} from "openid-client";
import { mailAddress, personName, type SignInCause } from "../domain/person/sign-in.ts";
import { ANSWER_SECONDS, AnswerRefused, asking, authorizationUrl, sendRequest, tokensFor } from "./client.ts";
import type { SignInProvider } from "./port.ts";

export interface GithubOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly organization: string | null;
  /** Where GitHub is. Tests have their own. */
  readonly web?: string;
  readonly api?: string;
}

/** The issuer of GitHub's numeric ids in our records. It never changes. */
const ISSUER = "https://github.com";
const API_VERSION = "2022-11-28";
const ACCEPTED = "application/vnd.github+json";

const githubConfiguration = ({ clientId, clientSecret, web = ISSUER }: GithubOptions): Configuration => {
  const configuration = new Configuration(
    {
      issuer: `${web}/login/oauth`,
      authorization_endpoint: `${web}/login/oauth/authorize`,
      token_endpoint: `${web}/login/oauth/access_token`,
    },
    clientId,
    undefined,
    ClientSecretPost(clientSecret),
  );
  configuration.timeout = ANSWER_SECONDS;
  configuration[customFetch] = sendRequest;
  if (web.startsWith("http:")) allowInsecureRequests(configuration);
  return configuration;
};

/** An answer of the API as JSON. Null if the API does not show it to this person. */
const fromApi = async (
  configuration: Configuration,
  token: string,
  url: URL,
): Promise<Readonly<Record<string, unknown>> | null> => {
  const headers = new Headers({ accept: ACCEPTED, "x-github-api-version": API_VERSION });
  const answer = await fetchProtectedResource(configuration, token, url, "GET", null, headers);
  if (answer.status === 404 || answer.status === 403) return null;
  if (answer.status !== 200) throw new AnswerRefused(`GitHub answered ${answer.status}`);
  const json: unknown = await answer.json();
  if (typeof json !== "object" || json === null) throw new AnswerRefused("GitHub answered no object");
  return json as Readonly<Record<string, unknown>>;
};

export const githubProvider = (options: GithubOptions): SignInProvider => {
  const { organization, api = "https://api.github.com" } = options;
  const configuration = githubConfiguration(options);
  const membershipRefusal = async (token: string): Promise<SignInCause | null> => {
    if (organization === null) return "no_organization";
    const url = new URL(`${api}/user/memberships/orgs/${encodeURIComponent(organization)}`);
    return (await fromApi(configuration, token, url))?.["state"] === "active" ? null : "not_a_member";
  };
  return {
    id: "github",
    issuer: ISSUER,
    label: "GitHub",
    begin: (secrets, redirectUri) =>
      asking(() =>
        authorizationUrl(configuration, secrets, {
          redirect_uri: redirectUri,
          // Without a scope, GitHub gives what everyone may see.
          ...(organization === null ? {} : { scope: "read:org" }),
        }),
      ),
    finish: (callback, secrets) =>
      asking(async () => {
        const { access_token: token } = await tokensFor(configuration, callback, {
          pkceCodeVerifier: secrets.verifier,
          expectedState: secrets.state,
        });
        const user = await fromApi(configuration, token, new URL(`${api}/user`));
        const id = user?.["id"];
        if (!Number.isSafeInteger(id)) throw new AnswerRefused("GitHub answered without a numeric id");
        return {
          issuer: ISSUER,
          subject: String(id),
          name: personName(user?.["name"], user?.["login"]),
          // The address of her public profile, which GitHub offers only if it is verified. Others need a scope.
          email: mailAddress(user?.["email"]),
          entryRefusal: null,
          signUpRefusal: await membershipRefusal(token),
        };
      }),
  };
};
