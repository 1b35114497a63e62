import { expect, it } from "vitest";
import { commitAuthor } from "../../../src/domain/repository/commit-author.ts";

const named = (name: string) => commitAuthor({ id: "u1", name });

it("names a person as git's author, without characters that git gives a meaning", () => {
  expect(named("Mona Lisa")).toEqual({ name: "Mona Lisa", email: "u1@platform.invalid" });
  expect(named("Mona <root@x>\nauthor").name).toBe("Mona  root@x  author");
});

it("names a person by the id if git would refuse the name", () => {
  for (const name of ["", " <>\n", ".,;"]) expect(named(name).name).toBe("u1");
});
