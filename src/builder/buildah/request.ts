/** Checks a request before anything of it is used. */
import { readdir } from "node:fs/promises";
import type { BuildRequest } from "../port.ts";

/** A valid directory name that cannot lead elsewhere. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** @throws Error for a mistake of the caller */
export const checkRequest = async ({ id, layerStore, output }: BuildRequest): Promise<void> => {
  if (!ID.test(id)) throw new Error("a build's id is a lower-case UUID");
  if (layerStore === "") throw new Error("a build needs the key of its layer store");
  if ((await readdir(output)).length > 0) throw new Error("the output of a build must be empty");
};
