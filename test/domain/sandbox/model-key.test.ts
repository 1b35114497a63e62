import { describe, expect, test } from "vitest";
import { MODEL_PROVIDERS } from "../../../src/domain/sandbox/model.ts";
import { keyQuestion, keyVerdict, triedProvider } from "../../../src/domain/sandbox/model-key.ts";

const providerOf = (name: string) => {
  const provider = triedProvider(name);
  if (provider === null) throw new Error(`${name} is not known`);
  return provider;
};
const openai = providerOf("OPENAI_API_KEY");
const google = providerOf("GEMINI_API_KEY");
const answer = (status: number, body: unknown) => ({ status, text: JSON.stringify(body) });

describe("a model's key", () => {
  test("belongs to a provider by the name of its secret", () => {
    expect(triedProvider("GEMINI_API_KEY")?.id).toBe("google");
    expect(triedProvider("NPM_TOKEN")).toBeNull();
    // It is not known which of its reads needs a key.
    expect(triedProvider("PERPLEXITY_API_KEY")).toBeNull();
  });

  test("is asked about at every provider that can be asked, and appears in a header only", () => {
    const asked = MODEL_PROVIDERS.flatMap((provider) => keyQuestion(provider, "sk-1") ?? []);
    expect(asked).toHaveLength(8);
    for (const { path, headers } of asked) {
      expect(path).not.toContain("sk-1");
      expect(Object.values(headers).filter((value) => value.includes("sk-1"))).toHaveLength(1);
    }
  });

  test.each(["", "two words", "sk-1\r\nx-other: 1", "sk-ä", "sk-1\n"])("is not sent if it is %j", (key) => {
    expect(keyQuestion(openai, key)).toBeNull();
  });

  test.each([
    [openai, answer(200, { data: [] }), "accepted", "api.openai.com accepts the key."],
    [
      openai,
      answer(401, { error: { message: "Incorrect API key provided: sk-1." } }),
      "rejected",
      "api.openai.com rejects the key (401). It says: Incorrect API key provided: (key).",
    ],
    [openai, answer(403, {}), "rejected", "api.openai.com rejects the key (403)."],
    [
      google,
      answer(400, { error: { code: 400, message: "API key not valid. Please pass a valid API key." } }),
      "rejected",
      "generativelanguage.googleapis.com rejects the key (400). It says: API key not valid. Please pass a valid API key.",
    ],
    [
      openai,
      answer(429, "slow down"),
      "unknown",
      "api.openai.com says nothing about the key (429). It says: slow down",
    ],
    [openai, { status: 502, text: "<html>" }, "unknown", "api.openai.com says nothing about the key (502)."],
  ])("is judged by the answer of its provider: $1.status", (provider, given, outcome, message) => {
    const verdict = keyVerdict(provider, "sk-1", given);
    expect(verdict).toMatchObject({ outcome, message });
    expect(verdict.advice === null).toBe(outcome === "accepted");
  });

  test.each([
    ["", ""],
    ["https://login.example.org/in?token=secret#x", " to https://login.example.org/in"],
    ["https://example.org/sk-1", " to https://example.org/(key)"],
    ["mailto:x@example.org", ""],
  ])("is not judged by a redirect to %j", (place, to) => {
    const redirect = URL.parse(place);
    expect(keyVerdict(openai, "sk-1", { status: 302, text: "", redirect })).toEqual({
      outcome: "unknown",
      message: `api.openai.com answers with a redirect${to}, which is not followed.`,
      advice:
        "Check whether the API has moved, or whether a proxy or a sign-in page answers in place of the provider.",
    });
  });

  test("shows a part of long words only", () => {
    const { message } = keyVerdict(openai, "sk-1", answer(401, { error: { message: "x".repeat(10_000) } }));
    expect(message.length).toBeLessThan(400);
  });
});
