import { generateKeyPairSync } from "node:crypto";
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import type { CredentialRequest, RepositoryRequest } from "../../../src/domain/repository/repository.ts";
import {
  credentialPlace,
  decodeCredential,
  encodeCredential,
  type ExternalSource,
  opensWithout,
  replacingCredential,
  requestedCredential,
} from "../../../src/domain/repository/repository-credential.ts";
import { checkSecretName } from "../../../src/domain/secret/secret.ts";

const nowhere: ReadonlySet<string> = new Set();
const { privateKey: pem } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const { privateKey: rsa } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs1", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const app = { app_id: "1", installation_id: "2", private_key: rsa };
const hosts = "git.example.org ssh-ed25519 AAAA";
const https = { kind: "git", url: "https://git.example.org/a.git" } as const;
const ssh = { kind: "git", url: "ssh://git@git.example.org/a.git" } as const;
const github = { kind: "github", owner: "o", name: "n" } as const;

const read = (request: RepositoryRequest) => requestedCredential(request, nowhere);

describe("a repository's credential", () => {
  it.each<[string, RepositoryRequest, unknown]>([
    ["nothing for a hosted one", { kind: "hosted" }, null],
    ["nothing for a public one", https, null],
    [
      "a name and a password",
      { ...https, username: "ci", password: "p:w" },
      { kind: "password", username: "ci", password: "p:w" },
    ],
    ["a password alone", { ...https, password: "pw" }, { kind: "password", username: "git", password: "pw" }],
    ["a token of a code host", { ...github, token: "t" }, { kind: "token", token: "t" }],
    [
      "an app of a code host",
      { ...github, app },
      { kind: "app", appId: "1", installationId: "2", privateKey: rsa },
    ],
  ])("is read: %s", (_, request, credential) => {
    expect(read(request)).toEqual(Result.succeed(credential));
  });

  it("ends its key's lines as OpenSSH requires", () => {
    const pasted = pem.trimEnd().replaceAll("\n", "\r\n");
    expect(read({ ...ssh, ssh_private_key: pasted, known_hosts: `${hosts}\r\n\r\n` })).toEqual(
      Result.succeed({ kind: "ssh_key", privateKey: pem, knownHosts: `${hosts}\n` }),
    );
  });

  it.each<[string, RepositoryRequest]>([
    ["url", { ...https, url: "https://u:canary@git.example.org/a.git" }],
    ["url", { ...https, url: "https://127.0.0.1/a.git" }],
    ["password", { ...https, username: "ci" }],
    ["password", { ...https, password: "canary\nhost=evil.example" }],
    ["username", { ...https, username: "canary\r\n", password: "pw" }],
    ["username", { ...https, username: "a:b", password: "pw" }],
    ["ssh_private_key", { ...https, ssh_private_key: pem }],
    ["known_hosts", { ...https, known_hosts: hosts }],
    ["password", { ...ssh, password: "canary" }],
    ["ssh_private_key", { ...ssh, known_hosts: hosts }],
    ["known_hosts", { ...ssh, ssh_private_key: pem }],
    ["known_hosts", { ...ssh, ssh_private_key: pem, known_hosts: "\n" }],
    ["ssh_private_key", { ...ssh, ssh_private_key: "canary", known_hosts: hosts }],
    ["app", { ...github, token: "canary", app }],
    ["token", github],
    ["token", { ...github, token: "canary\n" }],
    ["token", { ...github, token: "canary canary" }],
    ["app.app_id", { ...github, app: { ...app, app_id: "canary/1" } }],
    ["app.installation_id", { ...github, app: { ...app, installation_id: "2/canary" } }],
    ["app.private_key", { ...github, app: { ...app, private_key: "canary" } }],
    ["app.private_key", { ...github, app: { ...app, private_key: pem } }],
    ["api_url", { ...github, token: "canary", api_url: "https://canary:x@github.example" }],
    ["api_url", { ...github, token: "canary", api_url: "http://github.example/api/v3" }],
    ["api_url", { ...github, token: "canary", api_url: "https://10.0.0.1/api/v3" }],
    ["api_url", { ...github, token: "canary", api_url: "ssh://git@github.example" }],
    ["api_url", { ...github, token: "canary", api_url: "https://github.example/api/v3?x=canary" }],
    ["api_url", { ...github, token: "canary", api_url: "https://github.example/other" }],
  ])("is refused by the field %s, without quoting it [G03] [S06]", (path, request) => {
    const refused = read(request);
    expect(Result.isFailure(refused) && refused.failure.path).toBe(path);
    expect(JSON.stringify(refused)).not.toContain("canary");
  });

  it.each<[string, ExternalSource, CredentialRequest, unknown]>([
    [
      "a password",
      https,
      { username: "ci", password: "p:w" },
      { kind: "password", username: "ci", password: "p:w" },
    ],
    [
      "an SSH key",
      ssh,
      { ssh_private_key: pem, known_hosts: hosts },
      { kind: "ssh_key", privateKey: pem, knownHosts: `${hosts}\n` },
    ],
    ["a token", github, { token: "t" }, { kind: "token", token: "t" }],
    ["an app", github, { app }, { kind: "app", appId: "1", installationId: "2", privateKey: rsa }],
  ])(
    "replaces another one under the same rules as for a new project: %s",
    (_, source, request, credential) => {
      expect(replacingCredential(source, request, nowhere)).toEqual(Result.succeed(credential));
    },
  );

  it.each<[string, ExternalSource, CredentialRequest]>([
    ["password", https, {}],
    ["password", https, { username: "canary" }],
    ["token", https, { password: "canary", token: "canary" }],
    ["app", ssh, { ssh_private_key: pem, known_hosts: hosts, app }],
    ["password", ssh, { password: "canary" }],
    ["ssh_private_key", ssh, {}],
    ["token", github, {}],
    ["username", github, { token: "canary", username: "canary" }],
    ["known_hosts", github, { token: "canary", known_hosts: "canary" }],
  ])(
    "replaces no other one if the field %s is wrong, and the error does not quote it [S06]",
    (path, source, request) => {
      const refused = replacingCredential(source, request, nowhere);
      expect(Result.isFailure(refused) && refused.failure.path).toBe(path);
      expect(JSON.stringify(refused)).not.toContain("canary");
    },
  );

  it("is optional for a public repository, and for no other", () => {
    expect([https, ssh, github].map(opensWithout)).toEqual([true, false, false]);
  });

  it("can be read back from the encrypted text, under a name that no secret has", () => {
    const credential = { kind: "password", username: "ci", password: '"p"' } as const;
    expect(decodeCredential(encodeCredential(credential))).toEqual(credential);
    expect(checkSecretName(credentialPlace("x").name)).not.toBeNull();
  });
});
