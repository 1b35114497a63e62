/** The sign-in providers that the operator has set up. */
import { readFileSync } from "node:fs";
import type { SignInSettings } from "../domain/person/sign-in.ts";
import { githubProvider } from "./github.ts";
import { oidcProvider } from "./oidc.ts";
import type { SignInProvider } from "./port.ts";

/**
 * The client secret in a file, without white space around it.
 *
 * @throws Error with the setting's name
 */
const secretIn = (setting: string, file: string): string => {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new Error(`${setting} names ${file}, which cannot be read: ${code}`, { cause: error });
  }
  if (text === "") throw new Error(`${setting} names ${file}, which is empty`);
  return text;
};

/** @throws Error if a secret's file cannot be read: the service does not start. */
export const makeProviders = ({ oidc, github }: SignInSettings): readonly SignInProvider[] => [
  ...(oidc === null
    ? []
    : [
        oidcProvider({
          ...oidc,
          clientSecret: secretIn("PLATFORM_OIDC_CLIENT_SECRET_FILE", oidc.secretFile),
        }),
      ]),
  ...(github === null
    ? []
    : [
        githubProvider({
          ...github,
          clientSecret: secretIn("PLATFORM_GITHUB_LOGIN_SECRET_FILE", github.secretFile),
        }),
      ]),
];
