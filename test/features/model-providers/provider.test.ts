import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import {
  keyFault,
  modelsFault,
  nameFault,
  parseBaseUrl,
} from "../../../src/features/model-providers/rules/provider.ts";

const kept = (text: string) => Result.getOrNull(parseBaseUrl(text));

describe("a provider of models", () => {
  it("has a name that is a part of a path and of a model, and no name with another meaning", () => {
    expect(["acme", "a", "anthropic", "our-own-2"].map(nameFault)).toEqual([null, null, null, null]);
    for (const name of ["", "Acme", "2x", "a/b", "a.b", "x".repeat(41), "v1", "managed", "opencode"])
      expect(nameFault(name)).not.toBe(null);
  });

  it("has a base URL without a credential in it, kept without a slash at its end", () => {
    expect(kept("https://api.acme.example/v1/")).toBe("https://api.acme.example/v1");
    expect(kept("http://127.0.0.1:11434/v1")).toBe("http://127.0.0.1:11434/v1");
    expect(kept("https://api.acme.example")).toBe("https://api.acme.example");
    for (const text of [
      "acme",
      "ftp://a.example",
      "https://k@a.example/",
      "https://a.example/?key=x",
      "https://a.example/#x",
    ])
      expect(kept(text)).toBe(null);
  });

  it("has models and a key that requests can carry", () => {
    expect(modelsFault(["meta/llama-4:70b", "gpt-5.5"])).toBe(null);
    expect(modelsFault(["two words"])).toContain('"two words"');
    expect(keyFault("sk-1")).toBe(null);
    expect(keyFault("")).toBe(null);
    expect(keyFault("sk 1\n")).not.toBe(null);
  });
});
