/** `npm start`. */
import { run, service } from "./serve.ts";

run(service);
