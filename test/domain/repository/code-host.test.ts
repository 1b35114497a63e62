import * as Result from "effect/Result";
import { expect, it } from "vitest";
import { readCodeHost } from "../../../src/domain/repository/code-host.ts";

const repository = { owner: "acme", name: "greeter" };
const allowed = new Set(["127.0.0.1"]);

it.each([
  [undefined, "https://api.github.com", "https://github.com/acme/greeter.git"],
  ["https://api.github.com/", "https://api.github.com", "https://github.com/acme/greeter.git"],
  ["https://api.acme.ghe.com", "https://api.acme.ghe.com", "https://acme.ghe.com/acme/greeter.git"],
  [
    "https://code.example.org/api/v3",
    "https://code.example.org/api/v3",
    "https://code.example.org/acme/greeter.git",
  ],
  ["http://127.0.0.1:81/api/v3", "http://127.0.0.1:81/api/v3", "http://127.0.0.1:81/acme/greeter.git"],
])("finds a repository's git address beside its API: %s", (api_url, api, git) => {
  const found = readCodeHost(api_url === undefined ? repository : { ...repository, api_url }, allowed);
  expect(found).toMatchObject({ success: { api, git } });
});

it("names the host that an operator allows, and accepts a private one only if it is allowed [G03]", () => {
  const api_url = "http://127.0.0.1:81/api/v3";
  expect(readCodeHost({ ...repository, api_url }, allowed)).toMatchObject({ success: { host: "127.0.0.1" } });
  expect(Result.isFailure(readCodeHost({ ...repository, api_url }, new Set()))).toBe(true);
});
