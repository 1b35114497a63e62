import { expect, it } from "vitest";
import { imageVariables, processVariables } from "../../../src/domain/environment/image-variables.ts";

it("keeps what an image may set, and no name that leads the platform's programs astray", () => {
  const kept = { GREETING: "hello world", EMPTY: "", lower_case: "1", LANG: "C" };
  const refused = {
    PATH: "/evil",
    HOME: "/evil",
    PLATFORM_TOKEN: "evil",
    NODE_OPTIONS: "--require /evil",
    LD_PRELOAD: "/evil.so",
    ld_preload: "/evil.so",
    BASH_ENV: "/evil",
    GIT_DIR: "/evil",
    http_proxy: "http://evil.example",
    "a b": "1",
    NUL: "a\0b",
  };
  expect(imageVariables({ ...kept, ...refused })).toEqual(kept);
});

it("keeps no more than 64 KiB", () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`N${at}`, "x".repeat(5000)]));
  expect(Object.keys(imageVariables(many))).toHaveLength(13);
});

it("reads the environment of a process, without what a container's runtime added", () => {
  const environ = [
    "A=1",
    "B=two=2",
    "C=line one\nline two",
    "EMPTY=",
    "=nameless",
    "no equals sign",
    "HOSTNAME=pod",
    "KUBERNETES_SERVICE_HOST=10.0.0.1",
    "KUBERNETES_PORT=tcp://10.0.0.1:443",
    "KUBERNETES_OWN=of the image",
    "",
  ].join("\0");
  expect(processVariables(environ)).toEqual({
    A: "1",
    B: "two=2",
    C: "line one\nline two",
    EMPTY: "",
    KUBERNETES_OWN: "of the image",
  });
});
