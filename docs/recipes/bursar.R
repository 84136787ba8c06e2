# Functions to ask a Bursar server from R. Source this file; it needs httr2 and jsonlite.
#
#   source("bursar.R")
#   bursar_ask("census", list(kind = "mean", column = "income", group_by = list("region")), epsilon = 0.05)

bursar_request <- function(path, body = NULL, headers = list()) {
  url <- Sys.getenv("BURSAR_URL")
  key <- Sys.getenv("BURSAR_KEY")
  if (url == "" || key == "") stop("Set BURSAR_URL and BURSAR_KEY.", call. = FALSE)
  request <- httr2::request(paste0(url, path))
  request <- httr2::req_auth_bearer_token(request, key)
  request <- httr2::req_headers(request, !!!headers)
  request <- httr2::req_error(request, is_error = function(response) FALSE)
  if (!is.null(body)) {
    text <- jsonlite::toJSON(body, auto_unbox = TRUE, null = "null", digits = NA)
    request <- httr2::req_body_raw(request, text, type = "application/json")
  }
  response <- tryCatch(
    httr2::req_perform(request),
    error = function(condition) stop(paste0(url, " cannot be reached."), call. = FALSE)
  )
  reply <- jsonlite::fromJSON(httr2::resp_body_string(response), simplifyVector = FALSE)
  if (httr2::resp_status(response) >= 400) bursar_stop(reply)
  reply
}

# A problem of the server becomes a condition of its own class: tryCatch(bursar_budget_exhausted = ...)
bursar_stop <- function(problem) {
  slug <- gsub("-", "_", sub(".*/", "", problem$type))
  text <- problem$detail
  if (length(problem$errors) > 0) {
    text <- paste(vapply(problem$errors, function(e) paste0(e$pointer, ": ", e$rule), ""), collapse = "; ")
  }
  condition <- structure(
    class = c(paste0("bursar_", slug), "bursar_problem", "error", "condition"),
    list(message = text, call = NULL, problem = problem)
  )
  stop(condition)
}

bursar_key <- function() {
  paste0("r-", paste(sample(c(0:9, letters), 32, replace = TRUE), collapse = ""))
}

# The value of an answer as a data frame, with columns for groups and for the interval.
bursar_frame <- function(answer) {
  flat <- function(item) {
    row <- list()
    for (name in names(item)) {
      value <- item[[name]]
      if (is.null(value)) next
      if (name == "group") {
        row <- c(row, flat(value))
      } else if (name == "interval") {
        row <- c(row, value[c("low", "high")])
      } else if (is.list(value)) {
        inner <- flat(value)
        names(inner) <- paste(name, names(inner), sep = "_")
        row <- c(row, inner)
      } else {
        row[[name]] <- value
      }
    }
    row
  }
  value <- answer$value
  if (!is.list(value)) value <- list(list(value = value, interval = answer$interval))
  do.call(rbind, lapply(value, function(item) {
    if (!is.list(item)) item <- list(value = item)
    as.data.frame(flat(item), stringsAsFactors = FALSE)
  }))
}

bursar_datasets <- function() {
  items <- bursar_request("/v1/datasets")$items
  data.frame(
    name = vapply(items, function(item) item$name, ""),
    description = vapply(items, function(item) item$description, "")
  )
}

bursar_sample <- function(dataset, rows = 10) {
  reply <- bursar_request(paste0("/v1/datasets/", dataset, "/sample?rows=", rows))
  do.call(rbind, lapply(reply$rows, function(row) {
    as.data.frame(lapply(row, function(cell) if (is.null(cell)) NA else cell))
  }))
}

bursar_preview <- function(dataset, query, epsilon, rows = NULL) {
  body <- list(dataset = dataset, query = query, privacy = list(epsilon = epsilon))
  if (!is.null(rows)) body$assume <- list(rows = rows)
  bursar_request("/v1/queries/preview", body)
}

bursar_ask <- function(dataset, query, epsilon) {
  body <- list(dataset = dataset, query = query, privacy = list(epsilon = epsilon))
  answer <- bursar_request("/v1/queries", body, list(`Idempotency-Key` = bursar_key()))
  structure(bursar_frame(answer), answer = answer)
}

bursar_sql <- function(text, epsilon) {
  body <- list(sql = text, privacy = list(epsilon = epsilon))
  answer <- bursar_request("/v1/queries", body, list(`Idempotency-Key` = bursar_key()))
  structure(bursar_frame(answer), answer = answer)
}

bursar_budgets <- function() {
  items <- bursar_request("/v1/budgets")$items
  data.frame(
    dataset = vapply(items, function(item) item$dataset, ""),
    holder = vapply(items, function(item) item$holder, ""),
    used = vapply(items, function(item) as.numeric(item$used), 0),
    questions_left = vapply(items, function(item) as.numeric(item$questions_left), 0)
  )
}
