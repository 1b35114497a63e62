import { expect, test } from "vitest";
import { mistypedNames } from "../../../src/domain/manifest/mistyped.ts";
import { cron, onlyError, parse, slugs } from "./manifest-text.ts";

test.each([
  ['# Ours\n[[trigger]]\nslug = "x"\n', "trigger", 2, "`trigger` is ignored. Did you mean [[triggers]]?"],
  ['[agent.reviewer]\nmodel = "opus"\n', "agent", 1, "`agent` is ignored. Did you mean [agents.<name>]?"],
  ["[Environment]\n", "Environment", 1, "`Environment` is ignored. Did you mean [environment]?"],
  ['[env]\nrequire = ["A"]\n', "env.require", 2, "`require` of [env] is ignored. Did you mean `required`?"],
  [
    'runtime.configdir = "x"\n',
    "runtime.configdir",
    1,
    "`configdir` of [runtime] is ignored. Did you mean `config_dir`?",
  ],
])("a name that is almost one of the manifest's is an error: %j", (text, path, line, message) => {
  expect(onlyError(parse(text))).toEqual({ slug: null, index: null, path, line, message });
});

test("the rest of the manifest stays in force", () => {
  const manifest = parse(`[[trigger]]\nslug = "x"\n\n${cron()}`);
  expect(slugs(manifest)).toEqual(["nightly"]);
  expect(manifest.fatal).toBe(false);
});

test("tables and fields of other programs are no errors", () => {
  expect(parse('[project]\nname = "a"\n[sandbox]\ncpu = 2\n[runtime]\nport = 1\n').errors).toEqual([]);
});

test("of very many names, a hundred are looked at", () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`other-${at}`, 1]));
  expect(mistypedNames({ ...many, trigger: 1 }, "")).toEqual([]);
  expect(mistypedNames({ trigger: 1, ...many }, "")).toHaveLength(1);
});
