"""Public cards of the demo data, in the format of `POST /v1/datasets`.

Bounds and lists come from the study's documentation and from common sense, never from the rows.
Everything written here is public knowledge.
"""

from typing import Any

CENSUS: dict[str, Any] = {
    "name": "census",
    "description": "A made-up census of 30,000 persons: nobody in it exists.",
    "source": {"engine": "duckdb", "path": "census.parquet"},
    "person": {"kind": "row"},
    "neighbours": "add_remove",
    "columns": [
        {"name": "age", "type": "integer", "low": 0, "high": 120, "description": "in whole years"},
        {"name": "sex", "type": "category", "values": ["female", "male"]},
        {"name": "region", "type": "category", "values": ["north", "south", "east", "west"]},
        {
            "name": "education",
            "type": "category",
            "values": ["primary", "secondary", "vocational", "degree", "higher degree"],
            "description": "the highest level reached or, of the young, attended",
        },
        {
            "name": "employment",
            "type": "category",
            "values": [
                "employed",
                "self-employed",
                "unemployed",
                "student",
                "retired",
                "at home",
                "child",
            ],
        },
        {
            "name": "occupation",
            "type": "category",
            "values": [
                "managerial",
                "professional",
                "technical",
                "clerical",
                "sales",
                "service",
                "trade",
                "operator",
                "labourer",
                "none",
            ],
            "description": "of those who work; none for the others; missing if not reported",
        },
        {
            "name": "hours",
            "type": "integer",
            "low": 0,
            "high": 100,
            "description": "worked in a usual week; missing if not reported",
        },
        {
            "name": "income",
            "type": "number",
            "low": 0,
            "high": 200_000,
            "description": "in a year, before tax; missing if not reported",
        },
        {
            "name": "household_size",
            "type": "integer",
            "low": 1,
            "high": 15,
            "description": "persons who live together",
        },
        {
            "name": "home_owned",
            "type": "boolean",
            "description": "whether the household owns its home",
        },
        {"name": "interviewed", "type": "date", "low": "2025-01-01", "high": "2025-12-31"},
    ],
    "cells": {"column": "region"},
}

RAND_HIE: dict[str, Any] = {
    "name": "rand-hie",
    "description": (
        "The RAND Health Insurance Experiment, 1974 to 1982, in the public domain: families were "
        "given insurance by lot, and their use of medicine was followed for three or five years. "
        "A row is one person in one year of the study."
    ),
    "source": {"engine": "duckdb", "path": "rand_hie.parquet"},
    "person": {"kind": "column", "column": "person", "rows_max": 5},
    "neighbours": "add_remove",
    "columns": [
        {
            "name": "site",
            "type": "category",
            "values": ["1", "2", "3", "4", "5", "6"],
            "description": "one of six places in the United States",
        },
        {
            "name": "year",
            "type": "integer",
            "low": 1,
            "high": 5,
            "description": "of the study, from the family's enrolment",
        },
        {
            "name": "coinsurance",
            "type": "integer",
            "low": 0,
            "high": 100,
            "description": "percent of a medical bill that the family pays, by lot",
        },
        {
            "name": "individual_deductible",
            "type": "boolean",
            "description": "whether the plan has a deductible for each person",
        },
        {
            "name": "age",
            "type": "integer",
            "low": 0,
            "high": 67,
            "description": "in whole years; nobody over 61 was enrolled",
        },
        {"name": "female", "type": "boolean"},
        {
            "name": "black",
            "type": "boolean",
            "description": "the head of the household; missing if not reported",
        },
        {
            "name": "education_years",
            "type": "number",
            "low": 0,
            "high": 30,
            "description": "of who decides for the household",
        },
        {
            "name": "family_income",
            "type": "number",
            "low": 0,
            "high": 50_000,
            "description": "dollars in a year, as the study counts them",
        },
        {"name": "family_size", "type": "integer", "low": 1, "high": 20},
        {
            "name": "health",
            "type": "category",
            "values": ["excellent", "good", "fair", "poor"],
            "description": "as the person rates it at enrolment",
        },
        {
            "name": "general_health",
            "type": "number",
            "low": 0,
            "high": 100,
            "description": "index at enrolment, 100 is best; missing for many",
        },
        {
            "name": "mental_health",
            "type": "number",
            "low": 0,
            "high": 100,
            "description": "index at enrolment, 100 is best",
        },
        {
            "name": "chronic_disease",
            "type": "number",
            "low": 0,
            "high": 100,
            "description": "count of chronic diseases at enrolment, as the study weighs it",
        },
        {
            "name": "physical_limitation",
            "type": "boolean",
            "description": "at enrolment; missing if not reported",
        },
        {
            "name": "doctor_visits",
            "type": "integer",
            "low": 0,
            "high": 100,
            "description": "outpatient, face to face, in the year",
        },
        {
            "name": "psychotherapy_visits",
            "type": "integer",
            "low": 0,
            "high": 52,
            "description": "in the year; the plans paid for 52",
        },
        {"name": "hospital_admissions", "type": "integer", "low": 0, "high": 12},
        {
            "name": "outpatient_spending",
            "type": "number",
            "low": 0,
            "high": 5_000,
            "description": "dollars in the year, without psychotherapy, drugs and dentists",
        },
        {
            "name": "drug_spending",
            "type": "number",
            "low": 0,
            "high": 1_000,
            "description": "dollars in the year",
        },
        {
            "name": "psychotherapy_spending",
            "type": "number",
            "low": 0,
            "high": 2_500,
            "description": "dollars in the year",
        },
        {
            "name": "inpatient_spending",
            "type": "number",
            "low": 0,
            "high": 50_000,
            "description": "dollars in the year",
        },
        {
            "name": "medical_spending",
            "type": "number",
            "low": 0,
            "high": 50_000,
            "description": "dollars in the year, in and out of hospital, without psychotherapy",
        },
    ],
}
