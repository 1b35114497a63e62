import { expect, it } from "vitest";
import { commitAuthor } from "../../src/domain/commit-author.ts";

it("names a person as git's author, without characters that git gives a meaning", () => {
  const named = (name: string) => commitAuthor({ id: "u1", name });
  expect(named("Mona Lisa")).toEqual({ name: "Mona Lisa", email: "u1@platform.invalid" });
  expect(named("Mona <root@x>\nauthor").name).toBe("Mona  root@x  author");
});

it("names a person by the id if git would refuse the name", () => {
  for (const name of ["", " <>\n", ".,;"]) expect(commitAuthor({ id: "u1", name }).name).toBe("u1");
});
