/** A server that does nothing but answer, a process of its own: what a request takes on a machine that is this busy. */
import { createServer } from "node:http";
import { answer, serveParent } from "../programs.ts";

serveParent(createServer((_request, response) => answer(response, 200, "{}")));
